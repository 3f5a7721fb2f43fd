// SPDX-License-Identifier: Apache-2.0
#include "observe/report/page.h"

#include "core/format.h"

namespace stoker::observe {

// The style sheet of report.html. The six colours are those of Okabe and Ito ("Color Universal Design", 2008), made for
// colour-blind readers; yellow, which no white page shows, is left out, and dark pages get lighter shades.

inline constexpr const char* kReportStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#1b1f24;--faint:#5c6670;--line:#d5dae0;--heat:0,114,178;--bad:#b34700;
--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#b3558b;--c4:#c28800;--c5:#2f8fc4;--c6:#aab2bb}
@media(prefers-color-scheme:dark){:root{--paper:#12161b;--card:#1b2128;--ink:#e6eaee;--faint:#9aa5b1;--line:#39424d;
--heat:86,180,233;--bad:#ff8a3d;--c0:#56b4e9;--c1:#ff8a3d;--c2:#2cc79b;--c3:#e59ac5;--c4:#f0b429;--c5:#8fa8ff;--c6:#5d6873}}
*{box-sizing:border-box}
body{margin:0 auto;padding:.8rem;max-width:75rem;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.3rem;margin:.2rem 0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:1.8rem 0 .6rem}
p{margin:.3rem 0;max-width:75ch}.faint{color:var(--faint)}
a{color:var(--c0)}:focus-visible{outline:2px solid var(--c1);outline-offset:2px}
nav ul{list-style:none;margin:.6rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem}
code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:inherit;overflow-wrap:anywhere}
.grid-of-charts{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,362px),1fr))}
figure{margin:0;padding:.7rem .8rem;background:var(--card);border-radius:.5rem;min-width:0}
figcaption{font-weight:600;margin-bottom:.2rem}
svg.chart{display:block;max-width:100%;height:auto;overflow:visible}
svg text{fill:var(--faint);font-size:15px}
.grid{stroke:var(--line);stroke-width:.7;fill:none}.axis{stroke:var(--faint);stroke-width:1;fill:none}
g[class^=c] path,.key path{fill:none;stroke:var(--mark);stroke-width:1.8;stroke-linejoin:round}
.dashed path{stroke-dasharray:5 3}
g circle,.key circle{fill:var(--mark)}
.c0{--mark:var(--c0)}.c1{--mark:var(--c1)}.c2{--mark:var(--c2)}.c3{--mark:var(--c3)}.c4{--mark:var(--c4)}.c5{--mark:var(--c5)}
.c6{--mark:var(--c6)}
.legend{list-style:none;margin:.3rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.15rem 1rem}
th[scope=row]{white-space:nowrap}
p{overflow-wrap:anywhere}
.legend li{overflow-wrap:anywhere;max-width:336px}
.key{width:24px;height:8px;margin-right:.35rem}
.scroll{overflow-x:auto;background:var(--card);border-radius:.5rem;padding:.3rem .5rem;margin:.4rem 0;width:fit-content;max-width:100%}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--faint)}td.n,th.n{text-align:right}
tr:last-child>*{border-bottom:0}
.matrix td{text-align:center;border:1px solid var(--paper);min-width:2.1rem;padding:.25rem}
.matrix th{border:0;padding:.2rem .4rem}
.bar{display:flex;height:1.5rem;border-radius:.3rem;overflow:hidden;margin:.2rem 0 .1rem}
.bar i{background:var(--mark);border-right:1px solid var(--card)}
.swatch{display:inline-block;width:.75rem;height:.75rem;border-radius:.15rem;background:var(--mark);margin-right:.35rem}
.pictures{display:grid;gap:.7rem;grid-template-columns:repeat(auto-fill,minmax(136px,1fr))}
.pictures img{display:block;width:112px;max-width:100%;image-rendering:auto;border-radius:.25rem;margin-bottom:.3rem}
.pictures figure{overflow-wrap:anywhere}
.wrong{color:var(--bad)}
.verdict{background:var(--card);border-left:.3rem solid var(--c1);border-radius:.3rem;padding:.5rem .8rem}
details{background:var(--card);border-radius:.5rem;padding:.5rem .8rem;margin:.5rem 0;overflow-x:auto}
details figure{padding:.4rem 0}
summary{cursor:pointer;font-weight:600}
)css";

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
      reload_seconds > 0 ? core::format("; reloads itself every {} seconds while training continues", reload_seconds)
                         : "";
  // An empty icon: browsers would otherwise request one from the server.
  return core::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n{4}"
             "<link rel=\"icon\" href=\"data:,\">\n<title>{0} - Stoker report</title>\n<style>{1}</style></head>\n"
             "<body><header><h1>{0}</h1>\n<p class=\"faint\">{2}, {3}{5}</p>\n{6}</header>\n<main>\n",
             escape_html(title), kReportStyle, escape_html(made_by), escape_html(time), reload, note, links_of(body)) +
         body + "</main></body></html>\n";
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : core::printable(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

}  // namespace stoker::observe
