#include "collector/web/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "collector/web/format.h"
#include "collector/web/http.h"

namespace clew::collector::web {
namespace {

constexpr Column kFailure{"Failure", "failure"};
constexpr Column kBundles{"Bundles", "number"};
constexpr Column kFirstSeen{"First seen", "time"};
constexpr Column kLastSeen{"Last seen", "time"};
constexpr Column kHosts{"Hosts", "hosts"};
constexpr Column kStatus{"Status", "status"};

constexpr Column kBundle{"Bundle", "failure"};
constexpr Column kHost{"Host", "hosts"};
constexpr Column kRecorded{"Recorded", "time"};
constexpr Column kSize{"Size", "number"};
constexpr Column kSufficiency{"Sufficiency", "number"};

// In the list of groups; a group's page has more.
constexpr size_t kHostsShown = 1;

void WriteGroupRow(HtmlWriter& html, const PageContext& context,
                   const GroupRow& group) {
  WriteCell(html, kFailure, [&] {
    html.In("a",
            {{"class", "name"},
             {"href", "/groups/" + PercentEncode(group.signature)}},
            [&] { html.Foreign(TitleOf(group)); });
    html.Text(" ");
    WriteShortId(html, group.signature);
  });
  WriteCell(html, kBundles, [&] { html.Text(FormatCount(group.bundles)); });
  WriteCell(html, kFirstSeen,
            [&] { WriteTime(html, group.first_seen_s, context.now_s); });
  WriteCell(html, kLastSeen,
            [&] { WriteTime(html, group.last_seen_s, context.now_s); });
  WriteCell(html, kHosts, [&] { WriteHosts(html, group, kHostsShown); });
  WriteCell(html, kStatus, [&] {
    WriteState(html, group.state, group.why);
    WriteMark(html, group.mark);
  });
}

void WriteBundleRow(HtmlWriter& html, const PageContext& context,
                    const BundleRow& bundle) {
  WriteCell(html, kBundle, [&] {
    html.In("a", {{"class", "name"}, {"href", "/bundles/" + bundle.id.hex()}},
            [&] { html.Foreign(TitleOf(bundle)); });
    html.Text(" ");
    WriteShortId(html, bundle.id.hex());
  });
  WriteCell(html, kHost, [&] {
    html.Foreign(bundle.host);
    if (!bundle.unit.empty()) {
      html.In("span", {{"class", "why"}}, [&] { html.Foreign(bundle.unit); });
    }
  });
  WriteCell(html, kRecorded,
            [&] { WriteTime(html, bundle.recorded_at_s, context.now_s); });
  WriteCell(html, kSize, [&] { html.Text(FormatBytes(bundle.size_bytes)); });
  WriteCell(html, kSufficiency, [&] {
    html.Text(bundle.sufficiency ? fmt::format("{} of 100", *bundle.sufficiency)
                                 : "–");
  });
  WriteCell(html, kStatus, [&] {
    WriteState(html, bundle.state, bundle.why);
    if (context.IsDamaged(bundle.id)) {
      html.Element("span", {{"class", "why"}}, "damaged in the store");
    }
  });
}

}  // namespace

void WriteTable(HtmlWriter& html, const char* label, Columns columns,
                const std::function<void()>& rows) {
  html.In("table", {{"role", "table"}, {"aria-label", label}}, [&] {
    html.In("thead", {{"role", "rowgroup"}}, [&] {
      html.In("tr", {{"role", "row"}}, [&] {
        for (const Column& column : columns) {
          html.Element("th",
                       {{"role", "columnheader"},
                        {"scope", "col"},
                        {"class", column.css_class}},
                       column.name);
        }
      });
    });
    html.In("tbody", {{"role", "rowgroup"}}, rows);
  });
}

void WriteCell(HtmlWriter& html, const Column& column,
               const std::function<void()>& content) {
  html.In("td",
          {{"role", "cell"},
           {"class", column.css_class},
           {"data-label", column.name}},
          [&] { html.In("div", {}, content); });
}

std::string TitleOf(const GroupRow& group) {
  return TitleOf(group.title.empty() ? "no title" : group.title, group.program,
                 group.last_version);
}

std::string TitleOf(const BundleRow& bundle) {
  return TitleOf(bundle.failure.empty() ? "no failure" : bundle.failure,
                 bundle.program, bundle.version);
}

void WriteHosts(HtmlWriter& html, const GroupRow& group, size_t most) {
  const size_t shown = std::min(group.hosts.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    html.Text(i == 0 ? "" : ", ");
    html.In("a", {{"href", "/bundles?host=" + PercentEncode(group.hosts[i])}},
            [&] { html.Foreign(group.hosts[i]); });
  }
  if (group.host_count > shown) {
    html.Element(
        "span", {{"class", "muted"}},
        fmt::format(" and {} more", FormatCount(group.host_count - shown)));
  }
}

void WriteGroupTable(HtmlWriter& html, const PageContext& context,
                     const std::vector<GroupRow>& groups) {
  WriteTable(html, "Groups of failures",
             {kFailure, kBundles, kFirstSeen, kLastSeen, kHosts, kStatus}, [&] {
               for (const GroupRow& group : groups) {
                 html.In("tr", {{"role", "row"}},
                         [&] { WriteGroupRow(html, context, group); });
               }
             });
}

void WriteBundleList(HtmlWriter& html, const PageContext& context,
                     const std::string& address, uint64_t offset,
                     const ListPage<BundleRow>& bundles) {
  WriteBundleTable(html, context, bundles.rows);
  WritePaging(html, offset, bundles.rows.size(), bundles.total, address);
}

void WriteBundleTable(HtmlWriter& html, const PageContext& context,
                      const std::vector<BundleRow>& bundles) {
  WriteTable(html, "Bundles",
             {kBundle, kHost, kRecorded, kSize, kSufficiency, kStatus}, [&] {
               for (const BundleRow& bundle : bundles) {
                 html.In("tr", {{"role", "row"}},
                         [&] { WriteBundleRow(html, context, bundle); });
               }
             });
}

}  // namespace clew::collector::web
