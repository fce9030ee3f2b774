#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "collector/web/format.h"
#include "collector/web/http.h"
#include "collector/web/pages.h"
#include "collector/web/tables.h"
#include "collector/web/threads.h"

// The pages that are lists: groups, bundles of a group, bundles.

namespace clew::collector::web {
namespace {

constexpr size_t kDateDigits = 10;  // "2026-11-20"

void WriteCounts(HtmlWriter& html, const CatalogueCounts& counts) {
  html.Element(
      "p", {{"class", "summary"}},
      fmt::format("{} · {} · {} · {}", Plural(counts.groups, "group", "groups"),
                  Plural(counts.bundles, "bundle", "bundles"),
                  Plural(counts.hosts, "host", "hosts"),
                  FormatBytes(counts.bytes)));
}

// The states that bundles are in, each a link to those bundles.
void WriteStates(HtmlWriter& html, const CatalogueCounts& counts,
                 std::optional<BundleState> chosen) {
  html.In("ul", {{"class", "states"}, {"aria-label", "Bundles by state"}}, [&] {
    for (size_t i = 0; i < kBundleStates && i < counts.by_state.size(); ++i) {
      const auto state = static_cast<BundleState>(i);
      if (counts.by_state[i] == 0 && state != chosen) {
        continue;
      }
      html.In("li", {}, [&] {
        html.In("a",
                {{"href", fmt::format("/bundles?state={}", StateName(state))},
                 {"class", state == chosen ? "chosen" : ""}},
                [&] {
                  WriteState(html, state, "");
                  html.Text(" " + FormatCount(counts.by_state[i]));
                });
      });
    }
  });
}

const char* StatusName(std::optional<bool> resolved) {
  return !resolved ? "" : *resolved ? "resolved" : "open";
}

// Open groups, resolved ones, or both, of what is searched for.
void WriteStatusLinks(HtmlWriter& html, const GroupQuery& query) {
  const std::pair<const char*, std::optional<bool>> links[] = {
      {"all", std::nullopt}, {"open", false}, {"resolved", true}};
  html.In("ul", {{"class", "states"}, {"aria-label", "Groups by status"}}, [&] {
    for (const auto& [name, resolved] : links) {
      html.In("li", {}, [&] {
        html.Element("a",
                     {{"href", "/?" + FieldOf("q", query.text) +
                                   FieldOf("program", query.program) +
                                   FieldOf("status", StatusName(resolved))},
                      {"class", resolved == query.resolved ? "chosen" : ""}},
                     name);
      });
    }
    if (!query.program.empty()) {
      html.In("li", {}, [&] {
        html.Text("of program ");
        html.Foreign(query.program);
      });
    }
  });
}

void WriteNoGroups(HtmlWriter& html, const PageContext& context,
                   const GroupQuery& query, const CatalogueCounts& counts) {
  if (!query.text.empty() || !query.program.empty() || query.resolved) {
    WriteEmpty(html, "No group matches.", [&] {
      html.Text("Searched are titles, hosts and units for ");
      html.In("q", {}, [&] { html.Foreign(query.text); });
      html.Text(". ");
      html.Element("a", {{"href", "/"}}, "Show all groups");
    });
  } else if (counts.bundles == 0) {
    WriteEmpty(html, "No bundle yet.",
               [&] { WriteUploadAdvice(html, context); });
  } else if (counts.groups == 0) {
    WriteEmpty(html, "No group yet.", [&] {
      html.Text(Plural(counts.bundles, "bundle is", "bundles are"));
      html.Text(" here; they are grouped once their backtraces are made. ");
      html.Element("a", {{"href", "/bundles"}}, "Show bundles");
    });
  } else {
    WriteEmpty(html, "Nothing on this page.", [&] {
      html.Element("a", {{"href", "/"}}, "To the first page");
    });
  }
}

struct Field {
  const char* name;
  const char* label;
  const std::string& value;
};

// What bundles are filtered by; `state` and paging are links beside it.
void WriteFilter(HtmlWriter& html, const BundleQuery& query,
                 const std::string& since) {
  const Field fields[] = {{"program", "Program", query.program},
                          {"version", "Version", query.version},
                          {"failure", "Failure", query.failure},
                          {"unit", "Unit", query.unit},
                          {"host", "Host", query.host},
                          {"since", "Since", since}};
  html.In("form", {{"class", "filters"}, {"action", "/bundles"}}, [&] {
    for (const Field& field : fields) {
      html.In("label", {}, [&] {
        html.Element("span", field.label);
        html.Void(
            "input",
            {{"name", field.name},
             {"value", field.value},
             {"maxlength", "200"},
             {"placeholder",
              std::string_view(field.name) == "since" ? "2026-11-20" : ""}});
      });
    }
    if (query.state) {
      html.Void("input", {{"type", "hidden"},
                          {"name", "state"},
                          {"value", std::string(StateName(*query.state))}});
    }
    html.Element("button", {{"type", "submit"}}, "Filter");
    html.Element("a", {{"href", "/bundles"}}, "Show all");
  });
}

}  // namespace

std::string GroupsPage(const PageContext& context, const GroupQuery& query,
                       const Page<GroupRow>& groups,
                       const CatalogueCounts& counts) {
  return WritePage("Groups", Section::kGroups, [&](HtmlWriter& html) {
    html.In("div", {{"class", "title"}}, [&] {
      html.Element("h1", "Failures");
      WriteSearch(html, {.path = "/",
                         .text = query.text,
                         .placeholder = "function, host or unit",
                         .all = "all groups"});
    });
    WriteCounts(html, counts);
    WriteStates(html, counts, std::nullopt);
    WriteStatusLinks(html, query);
    if (groups.rows.empty()) {
      WriteNoGroups(html, context, query, counts);
      return;
    }
    WriteGroupTable(html, context, groups.rows);
    WritePaging(html, query.offset, groups.rows.size(), groups.total,
                "/?" + FieldOf("q", query.text) +
                    FieldOf("program", query.program) +
                    FieldOf("status", StatusName(query.resolved)));
  });
}

std::string BundlesPage(const PageContext& context, const BundleQuery& query,
                        const Page<BundleRow>& bundles,
                        const CatalogueCounts& counts) {
  return WritePage("Bundles", Section::kBundles, [&](HtmlWriter& html) {
    html.Element("h1", "Bundles");
    WriteCounts(html, counts);
    WriteStates(html, counts, query.state);
    WriteFilter(html, query,
                query.since_s == 0
                    ? ""
                    : FormatTimeIso(query.since_s).substr(0, kDateDigits));
    if (!bundles.rows.empty()) {
      WriteBundleList(html, context, "/bundles", query, bundles);
    } else if (counts.bundles == 0) {
      WriteEmpty(html, "No bundle yet.",
                 [&] { WriteUploadAdvice(html, context); });
    } else {
      WriteEmpty(html, "No bundle matches, or none on this page.", [&] {
        html.Element("a", {{"href", "/bundles"}}, "Show all bundles");
      });
    }
  });
}

std::string ErrorPage(int status, std::string_view reason,
                      std::string_view advice) {
  const std::string title(ReasonOf(status));
  return WritePage(title, Section::kNone, [&](HtmlWriter& html) {
    html.Element("h1", title);
    html.In("p", {{"class", "what"}}, [&] { html.Foreign(reason); });
    html.In("p", {}, [&] {
      html.Text(advice);
      html.Text(" ");
      html.Element("a", {{"href", "/"}}, "To the groups of failures");
    });
  });
}

}  // namespace clew::collector::web
