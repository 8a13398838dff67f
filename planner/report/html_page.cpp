#include "planner/report/html_page.h"

#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr const char* kStyle = R"(<style>
:root{color-scheme:light dark;--fg:#202124;--bg:#fff;--soft:#5f6368;--line:#dadce0;--bar:#0072b2;--bad:#b3261e;
--good:#137333}
@media (prefers-color-scheme:dark){:root{--fg:#e8eaed;--bg:#17191c;--soft:#aab0b6;--line:#3c4046;--bar:#56b4e9;
--bad:#ff897d;--good:#81c995}}
body{font:14px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:24px auto;max-width:1320px;
padding:0 20px}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p{margin:4px 0;color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}th:first-child,td:first-child{text-align:left}
th.text,td.text{text-align:left}td.long{white-space:normal;min-width:12em}
.bad{color:var(--bad);font-weight:600}.ours{font-weight:600}.good{color:var(--good)}.aside{color:var(--soft)}
.of{display:inline-block;width:60px;height:9px;background:var(--line);vertical-align:middle;margin-left:8px}
.of i{display:block;height:9px;background:var(--bar)}svg{max-width:100%;height:auto}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}tr,svg{break-inside:avoid}.wide{overflow:visible}}
</style>
)";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<title>" + xml_escaped(title) + "</title>\n";
  out += kStyle;
  return out + "</head>\n<body>\n" + body + "</body>\n</html>\n";
}

}  // namespace sailor
