#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/web/format.h"
#include "collector/web/http.h"
#include "collector/web/pages.h"
#include "collector/web/tables.h"
#include "collector/web/threads.h"

// The pages that are lists: groups, bundles of a group, bundles.

namespace clew::collector::web {
namespace {

void WriteCounts(HtmlWriter& html, const CatalogueCounts& counts) {
  html.Element(
      "p", {{"class", "summary"}},
      fmt::format("{} · {} · {} · {}", Plural(counts.groups, "group", "groups"),
                  Plural(counts.bundles, "bundle", "bundles"),
                  Plural(counts.hosts, "host", "hosts"),
                  FormatBytes(counts.bytes)));
}

// How many are in each state, each a link to those; `counts` are by state.
void WriteStates(HtmlWriter& html, const char* label,
                 const std::vector<uint64_t>& counts,
                 std::optional<BundleState> chosen,
                 const std::function<std::string(std::string_view)>& link) {
  html.In("ul", {{"class", "states"}, {"aria-label", label}}, [&] {
    for (size_t i = 0; i < kBundleStates && i < counts.size(); ++i) {
      const auto state = static_cast<BundleState>(i);
      if (counts[i] == 0 && state != chosen) {
        continue;
      }
      html.In("li", {}, [&] {
        html.In("a",
                {{"href", link(state == chosen ? "" : StateName(state))},
                 {"class", state == chosen ? "chosen" : ""}},
                [&] {
                  WriteState(html, state, "");
                  html.Text(" " + FormatCount(counts[i]));
                });
      });
    }
  });
}

std::string StateField(std::optional<BundleState> state) {
  return state ? std::string(StateName(*state)) : "";
}

// ---- Groups

constexpr const char* kGroupsPath = "/";

std::string StatusOf(const GroupQuery& query) {
  if (query.reopened) {
    return "reopened";
  }
  return !query.resolved ? "" : *query.resolved ? "resolved" : "open";
}

// What the address of a list of groups has beside the filter.
AddressFields GroupFields(const GroupQuery& query, std::string_view status,
                          std::string_view state) {
  return {{"q", query.text},
          {"status", std::string(status)},
          {"state", std::string(state)}};
}
AddressFields GroupFields(const GroupQuery& query) {
  return GroupFields(query, StatusOf(query), StateField(query.state));
}

std::string GroupsLink(const AddressFields& others,
                       const FilterFields& fields) {
  return std::string(kGroupsPath) + "?" + AddressOf(others, fields);
}

// Open groups, resolved ones, those seen again, or all.
void WriteStatusLinks(HtmlWriter& html, const GroupQuery& query,
                      const FilterFields& fields) {
  constexpr std::pair<const char*, const char*> kLinks[] = {
      {"all", ""},
      {"open", "open"},
      {"seen again", "reopened"},
      {"resolved", "resolved"}};
  html.In("ul", {{"class", "states"}, {"aria-label", "Groups by status"}}, [&] {
    for (const auto& [name, status] : kLinks) {
      html.In("li", {}, [&] {
        html.Element("a",
                     {{"href", GroupsLink(GroupFields(query, status,
                                                      StateField(query.state)),
                                          fields)},
                      {"class", status == StatusOf(query) ? "chosen" : ""}},
                     name);
      });
    }
  });
}

void WriteGroupFilters(HtmlWriter& html, const GroupQuery& query,
                       const FilterFields& fields,
                       const CatalogueCounts& counts) {
  WriteStates(html, "Groups by state", counts.groups_by_state, query.state,
              [&](std::string_view state) {
                return GroupsLink(GroupFields(query, StatusOf(query), state),
                                  fields);
              });
  WriteStatusLinks(html, query, fields);
  WriteFilterForm(html, kGroupsPath, GroupFields(query), fields);
  WriteFiltersInUse(html, kGroupsPath, GroupFields(query), fields);
}

bool IsFiltered(const GroupQuery& query) {
  return !query.text.empty() || query.resolved || query.reopened ||
         query.state || !query.filter.empty();
}

void WriteNoMatch(HtmlWriter& html, const GroupQuery& query) {
  WriteEmpty(html, "No group matches.", [&] {
    if (!query.text.empty()) {
      html.Text("Searched are titles, hosts and units for ");
      html.In("q", {}, [&] { html.Foreign(query.text); });
      html.Text(". ");
    }
    html.Text("A group matches that has all of what is chosen above. ");
    html.Element("a", {{"href", kGroupsPath}}, "Show all groups");
  });
}

void WriteNoGroups(HtmlWriter& html, const PageContext& context,
                   const GroupQuery& query, const CatalogueCounts& counts) {
  if (query.offset == 0 && IsFiltered(query)) {
    WriteNoMatch(html, query);
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
      html.Element("a", {{"href", kGroupsPath}}, "To the first page");
    });
  }
}

// ---- Bundles

constexpr const char* kBundlesPath = "/bundles";

void WriteBundleFilters(HtmlWriter& html, const BundleQuery& query,
                        const FilterFields& fields,
                        const CatalogueCounts& counts) {
  WriteStates(html, "Bundles by state", counts.by_state, query.state,
              [&](std::string_view state) {
                return std::string(kBundlesPath) + "?" +
                       AddressOf({{"state", std::string(state)}}, fields);
              });
  const AddressFields others = {{"state", StateField(query.state)}};
  WriteFilterForm(html, kBundlesPath, others, fields);
  WriteFiltersInUse(html, kBundlesPath, others, fields);
}

void WriteNoBundles(HtmlWriter& html, const PageContext& context,
                    const CatalogueCounts& counts) {
  if (counts.bundles == 0) {
    WriteEmpty(html, "No bundle yet.",
               [&] { WriteUploadAdvice(html, context); });
    return;
  }
  WriteEmpty(html, "No bundle matches, or none on this page.", [&] {
    html.Element("a", {{"href", kBundlesPath}}, "Show all bundles");
  });
}

}  // namespace

std::string GroupsPage(const PageContext& context, const GroupQuery& query,
                       const FilterFields& fields,
                       const ListPage<GroupRow>& groups,
                       const CatalogueCounts& counts) {
  return WritePage("Groups", Section::kGroups, [&](HtmlWriter& html) {
    AddressFields kept = GroupFields({.resolved = query.resolved,
                                      .reopened = query.reopened,
                                      .state = query.state});
    AddFields(fields, kept);
    html.In("div", {{"class", "title"}}, [&] {
      html.Element("h1", "Failures");
      WriteSearch(html, {.path = kGroupsPath,
                         .text = query.text,
                         .placeholder = "function, host or unit",
                         .all = "all groups",
                         .kept = kept});
    });
    WriteCounts(html, counts);
    WriteGroupFilters(html, query, fields, counts);
    if (groups.rows.empty()) {
      WriteNoGroups(html, context, query, counts);
      return;
    }
    WriteGroupTable(html, context, groups.rows);
    WritePaging(html, query.offset, groups.rows.size(), groups.total,
                GroupsLink(GroupFields(query), fields));
  });
}

std::string BundlesPage(const PageContext& context, const BundleQuery& query,
                        const FilterFields& fields,
                        const ListPage<BundleRow>& bundles,
                        const CatalogueCounts& counts) {
  return WritePage("Bundles", Section::kBundles, [&](HtmlWriter& html) {
    html.Element("h1", "Bundles");
    WriteCounts(html, counts);
    WriteBundleFilters(html, query, fields, counts);
    if (bundles.rows.empty()) {
      WriteNoBundles(html, context, counts);
      return;
    }
    const std::string address =
        std::string(kBundlesPath) + "?" +
        AddressOf({{"state", StateField(query.state)}}, fields);
    WriteBundleList(html, context, address, query.offset, bundles);
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
