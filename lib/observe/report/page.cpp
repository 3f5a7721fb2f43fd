// SPDX-License-Identifier: Apache-2.0
#include "observe/report/page.h"

#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/report_style.h"

namespace stoker::observe {
namespace {

constexpr char kHeading[] = "<h2 id=\"";

/// Links to the sections of a page that has several.
std::string links_of(const std::string& body) {
  std::string items;
  size_t count = 0;
  for (size_t at = body.find(kHeading); at != std::string::npos; at = body.find(kHeading, at + 1), ++count) {
    const size_t id = at + sizeof kHeading - 1, id_end = body.find('"', id), end = body.find("</h2>", id_end);
    items += "<li><a href=\"#" + body.substr(id, id_end - id) + "\">" + body.substr(id_end + 2, end - id_end - 2) +
             "</a></li>\n";
  }
  return count < 4 ? "" : "<nav aria-label=\"Sections\"><ul>" + items + "</ul></nav>\n";
}

}  // namespace

std::string section_of(const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  std::string id;
  for (const char c : title) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) id += c;
    if (c >= 'A' && c <= 'Z') id += static_cast<char>(c - 'A' + 'a');
    if (c == ' ') id += '-';
  }
  return "<section>" + (kHeading + id) + "\">" + escape_html(title) + "</h2>\n" + content + "</section>\n";
}

std::string table_of(const std::string& label, const std::string& rows, const char* table_class) {
  return core::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}>{}</table></div>\n",
      escape_html(label), *table_class == '\0' ? "" : core::format(" class=\"{}\"", table_class), rows);
}

std::string page_of(const std::string& title, const std::string& made_by, const std::string& time,
                    const std::string& body, int reload_seconds) {
  const std::string reload =
      reload_seconds > 0 ? core::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", reload_seconds) : "";
  const std::string note =
      reload_seconds > 0 ? core::format("; loads itself again every {} seconds while training goes on", reload_seconds)
                         : "";
  // An empty icon: browsers would otherwise ask the server of the page for one.
  return core::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n{4}"
             "<link rel=\"icon\" href=\"data:,\">\n<title>{0} - Stoker report</title>\n<style>{1}</style></head>\n"
             "<body><header><h1>{0}</h1>\n<p class=\"faint\">{2}, {3}{5}</p>\n{6}</header>\n<main>\n",
             escape_html(title), kReportStyle, escape_html(made_by), escape_html(time), reload, note, links_of(body)) +
         body + "</main></body></html>\n";
}

}  // namespace stoker::observe
