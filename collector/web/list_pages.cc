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

void WriteSearch(HtmlWriter& html, const std::string& text) {
  html.In("form", {{"class", "search"}, {"role", "search"}, {"action", "/"}},
          [&] {
            html.Element("label", {{"for", "q"}}, "Search");
            html.Void("input", {{"type", "search"},
                                {"id", "q"},
                                {"name", "q"},
                                {"value", text},
                                {"maxlength", "200"},
                                {"placeholder", "function, host or unit"}});
            html.Element("button", {{"type", "submit"}}, "Search");
            if (!text.empty()) {
              html.Element("a", {{"href", "/"}}, "all groups");
            }
          });
}

void WriteNoGroups(HtmlWriter& html, const PageContext& context,
                   const GroupQuery& query, const CatalogueCounts& counts) {
  if (!query.text.empty()) {
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

std::string QueryOf(const BundleQuery& query) {
  std::string text = "?";
  if (!query.host.empty()) {
    text += "host=" + PercentEncode(query.host) + "&";
  }
  if (query.state) {
    text += fmt::format("state={}&", StateName(*query.state));
  }
  return text;
}

void WriteBundleList(HtmlWriter& html, const PageContext& context,
                     const std::string& path, const BundleQuery& query,
                     const Page<BundleRow>& bundles) {
  WriteBundleTable(html, context, bundles.rows);
  WritePaging(html, query.offset, bundles.rows.size(), bundles.total,
              path + QueryOf(query));
}

// What a list of bundles leaves out, and a way to all.
void WriteFilter(HtmlWriter& html, const BundleQuery& query) {
  if (query.host.empty() && !query.state) {
    return;
  }
  html.In("p", {{"class", "filter"}}, [&] {
    html.Text("Only");
    if (query.state) {
      html.Text(fmt::format(" {}", StateName(*query.state)));
    }
    if (!query.host.empty()) {
      html.Text(" of host ");
      html.Foreign(query.host);
    }
    html.Text(". ");
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
      WriteSearch(html, query.text);
    });
    WriteCounts(html, counts);
    WriteStates(html, counts, std::nullopt);
    if (groups.rows.empty()) {
      WriteNoGroups(html, context, query, counts);
      return;
    }
    WriteGroupTable(html, context, groups.rows);
    WritePaging(
        html, query.offset, groups.rows.size(), groups.total,
        query.text.empty() ? "/?" : "/?q=" + PercentEncode(query.text) + "&");
  });
}

std::string GroupPage(const PageContext& context, const GroupRow& group,
                      const std::optional<Analysis>& analysis,
                      const BundleQuery& query,
                      const Page<BundleRow>& bundles) {
  const std::string title = group.title.empty() ? "no title" : group.title;
  return WritePage(title, Section::kGroups, [&](HtmlWriter& html) {
    html.In("p", {{"class", "crumbs"}},
            [&] { html.Element("a", {{"href", "/"}}, "Groups"); });
    WriteHeading(html, title);
    html.In("p", {{"class", "summary"}}, [&] {
      WriteState(html, group.state, group.why);
      html.Text(fmt::format(" {} on {}",
                            Plural(group.bundles, "bundle", "bundles"),
                            Plural(group.host_count, "host", "hosts")));
    });
    if (group.representative) {
      html.In("p", {}, [&] {
        html.In("a",
                {{"class", "button"},
                 {"href", "/bundles/" + group.representative->hex()}},
                [&] {
                  html.Text(group.state == BundleState::kWitness
                                ? "Replay this failure"
                                : "Open the bundle that has come furthest");
                });
      });
    }
    html.In("dl", {{"class", "facts"}}, [&] {
      html.Element("dt", "First seen");
      html.In("dd", {},
              [&] { WriteTime(html, group.first_seen_s, context.now_s); });
      html.Element("dt", "Last seen");
      html.In("dd", {},
              [&] { WriteTime(html, group.last_seen_s, context.now_s); });
      html.Element("dt", "Hosts");
      html.In("dd", {}, [&] { WriteHosts(html, group, kGroupHostsMax); });
      html.Element("dt", "Signature");
      html.In("dd", {}, [&] {
        html.Element("code", {{"class", "id"}}, group.signature);
      });
    });
    WriteFailingThread(html, analysis);
    html.Element("h2", "Bundles");
    if (bundles.rows.empty()) {
      WriteEmpty(html, "Nothing on this page.", [&] {
        html.Element("a",
                     {{"href", "/groups/" + PercentEncode(group.signature)}},
                     "To the first page");
      });
      return;
    }
    WriteBundleList(html, context, "/groups/" + PercentEncode(group.signature),
                    query, bundles);
  });
}

std::string BundlesPage(const PageContext& context, const BundleQuery& query,
                        const Page<BundleRow>& bundles,
                        const CatalogueCounts& counts) {
  return WritePage("Bundles", Section::kBundles, [&](HtmlWriter& html) {
    html.Element("h1", "Bundles");
    WriteCounts(html, counts);
    WriteStates(html, counts, query.state);
    WriteFilter(html, query);
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
