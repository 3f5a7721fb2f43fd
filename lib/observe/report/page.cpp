// SPDX-License-Identifier: Apache-2.0
#include "observe/report/page.h"

#include "core/format.h"
#include "observe/report/html.h"
#include "observe/report/report_style.h"

namespace stoker::observe {

std::string page_of(const std::string& title, const std::string& made_by, const std::string& time,
                    const std::string& body) {
  // An empty icon: browsers would otherwise ask the server of the page for one.
  return core::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n<title>{0} - Stoker report</title>\n<style>{1}</style></head>\n"
             "<body><h1>{0}</h1>\n<p class=\"faint\">{2}, {3}</p>\n",
             escape_html(title), kReportStyle, escape_html(made_by), escape_html(time)) +
         body + "</body></html>\n";
}

}  // namespace stoker::observe
