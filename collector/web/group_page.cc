#include <fmt/format.h>

#include <string>
#include <string_view>

#include "collector/web/format.h"
#include "collector/web/http.h"
#include "collector/web/pages.h"
#include "collector/web/races.h"
#include "collector/web/tables.h"
#include "collector/web/threads.h"

// The page of a group: what failed, in which versions, how often, and what its
// witness shows.

namespace clew::collector::web {
namespace {

void WriteVersion(HtmlWriter& html, const GroupRow& group,
                  const std::string& version) {
  html.In("a",
          {{"href", "/bundles?" + FieldOf("program", group.program) +
                        FieldOf("version", version)},
           {"title", version}},
          [&] { html.Foreign(ShortVersion(version)); });
}

void WriteSummary(HtmlWriter& html, const GroupRow& group) {
  html.In("p", {{"class", "summary"}}, [&] {
    WriteState(html, group.state, group.why);
    html.Text(fmt::format(" {} on {}",
                          Plural(group.bundles, "bundle", "bundles"),
                          Plural(group.host_count, "host", "hosts")));
    if (!group.first_version.empty()) {
      html.Text(" · first seen in version ");
      WriteVersion(html, group, group.first_version);
    }
    html.Text(" ");
    WriteMark(html, group.mark);
  });
}

void WriteNote(HtmlWriter& html, const PageContext& context,
               const GroupMark& mark) {
  if (mark.note.empty()) {
    return;
  }
  html.In("blockquote", {}, [&] {
    html.In("p", {}, [&] { html.Foreign(mark.note); });
    html.In("p", {{"class", "muted"}}, [&] {
      html.Foreign(mark.by);
      html.Text(" ");
      WriteTime(html, mark.at_s, context.now_s);
    });
  });
}

void WriteOpenButton(HtmlWriter& html, const GroupRow& group) {
  if (!group.representative) {
    return;
  }
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

void WriteProgram(HtmlWriter& html, const GroupRow& group) {
  if (group.program.empty()) {
    return;
  }
  html.Element("dt", "Program");
  html.In("dd", {}, [&] {
    html.In("a", {{"href", "/?" + FieldOf("program", group.program)}},
            [&] { html.Foreign(group.program); });
  });
}

void WriteVersions(HtmlWriter& html, const GroupDetails& group) {
  if (group.versions.empty()) {
    return;
  }
  html.Element("dt", "Versions");
  html.In("dd", {}, [&] {
    for (size_t i = 0; i < group.versions.size(); ++i) {
      html.Text(i == 0 ? "" : ", ");
      WriteVersion(html, group.row, group.versions[i].version);
    }
    if (group.row.versions > group.versions.size()) {
      html.Text(
          fmt::format(" and {} more",
                      FormatCount(group.row.versions - group.versions.size())));
    }
  });
}

// The page changes nothing: a command does.
void WriteMarkCommand(HtmlWriter& html, const PageContext& context,
                      const GroupRow& group) {
  constexpr size_t kDigits = 12;
  html.Element("dt", group.mark.resolved ? "To reopen" : "To resolve");
  html.In("dd", {}, [&] {
    html.Element("code", fmt::format("clew group {} {}{}",
                                     group.mark.resolved ? "reopen" : "resolve",
                                     context.client_options,
                                     group.signature.substr(0, kDigits)));
  });
}

void WriteFacts(HtmlWriter& html, const PageContext& context,
                const GroupDetails& group) {
  html.In("dl", {{"class", "facts"}}, [&] {
    WriteProgram(html, group.row);
    WriteVersions(html, group);
    html.Element("dt", "First seen");
    html.In("dd", {},
            [&] { WriteTime(html, group.row.first_seen_s, context.now_s); });
    html.Element("dt", "Last seen");
    html.In("dd", {},
            [&] { WriteTime(html, group.row.last_seen_s, context.now_s); });
    html.Element("dt", "Hosts");
    html.In("dd", {}, [&] { WriteHosts(html, group.row, kGroupHostsMax); });
    html.Element("dt", "Signature");
    html.In("dd", {}, [&] {
      html.Element("code", {{"class", "id"}}, group.row.signature);
    });
    WriteMarkCommand(html, context, group.row);
  });
}

void WriteBundles(HtmlWriter& html, const PageContext& context,
                  const GroupRow& group, const BundleQuery& query,
                  const ListPage<BundleRow>& bundles) {
  const std::string path = "/groups/" + PercentEncode(group.signature);
  html.Element("h2", "Bundles");
  if (bundles.rows.empty()) {
    WriteEmpty(html, "Nothing on this page.", [&] {
      html.Element("a", {{"href", path}}, "To the first page");
    });
    return;
  }
  WriteBundleList(html, context, path + "?", query.offset, bundles);
}

}  // namespace

std::string GroupPage(const PageContext& context, const GroupDetails& group,
                      const BundleQuery& query,
                      const ListPage<BundleRow>& bundles) {
  const GroupRow& row = group.row;
  const std::string title = TitleOf(row);
  return WritePage(title, Section::kGroups, [&](HtmlWriter& html) {
    html.In("p", {{"class", "crumbs"}},
            [&] { html.Element("a", {{"href", "/"}}, "Groups"); });
    WriteHeading(html, title);
    WriteSummary(html, row);
    WriteNote(html, context, row.mark);
    WriteOpenButton(html, row);
    WriteRaces(html, group.races);
    html.In("div", {{"class", "columns facts-first"}}, [&] {
      html.In("section", {}, [&] { WriteFacts(html, context, group); });
      html.In("section", {}, [&] { WriteDays(html, context, group.days); });
    });
    WriteFailingThread(html, group.analysis);
    WriteBundles(html, context, row, query, bundles);
  });
}

}  // namespace clew::collector::web
