#include <fmt/format.h>

#include <string>
#include <string_view>

#include "collector/web/format.h"
#include "collector/web/http.h"
#include "collector/web/pages.h"
#include "collector/web/races.h"
#include "collector/web/tables.h"
#include "collector/web/threads.h"

// The page of one bundle: how to replay it, what is known of it, where its
// threads were, which files it has.

namespace clew::collector::web {
namespace {

void WriteFact(HtmlWriter& html, const char* name, std::string_view value) {
  if (!value.empty()) {
    html.Element("dt", name);
    html.In("dd", {}, [&] { html.Foreign(value); });
  }
}

void WriteTimeFact(HtmlWriter& html, const PageContext& context,
                   const char* name, int64_t time_s) {
  html.Element("dt", name);
  html.In("dd", {}, [&] { WriteTime(html, time_s, context.now_s); });
}

void WriteGroupFact(HtmlWriter& html, const BundleDetails& details) {
  html.Element("dt", "Group");
  html.In("dd", {}, [&] {
    if (details.row.signature.empty()) {
      html.Text("not grouped yet: backtraces are still to be made");
      return;
    }
    html.In("a", {{"href", "/groups/" + PercentEncode(details.row.signature)}},
            [&] {
              html.Foreign(details.analysis && !details.analysis->title.empty()
                               ? details.analysis->title
                               : details.row.signature);
            });
  });
}

void WriteFacts(HtmlWriter& html, const PageContext& context,
                const BundleDetails& details) {
  const BundleRow& row = details.row;
  html.Element("h2", "Facts");
  html.In("dl", {{"class", "facts"}}, [&] {
    WriteGroupFact(html, details);
    WriteFact(html, "Program", row.program);
    WriteFact(html, "Version", row.version);
    WriteFact(html, "Failure", row.failure);
    html.Element("dt", "Host");
    html.In("dd", {}, [&] {
      html.In("a", {{"href", "/bundles?host=" + PercentEncode(row.host)}},
              [&] { html.Foreign(row.host); });
    });
    WriteFact(html, "Unit", row.unit);
    if (!row.command.empty()) {
      html.Element("dt", "Command");
      html.In("dd", {},
              [&] { html.In("code", {}, [&] { html.Foreign(row.command); }); });
    }
    WriteFact(html, "Source", row.source);
    WriteTimeFact(html, context, "Recorded", row.recorded_at_s);
    WriteTimeFact(html, context, "Received", row.received_at_s);
    if (row.sufficiency) {
      WriteFact(html, "Sufficiency",
                fmt::format("{} of 100", *row.sufficiency));
    }
    WriteFact(html, "Size", FormatBytes(row.size_bytes));
    html.Element("dt", "Id");
    html.In("dd", {},
            [&] { html.Element("code", {{"class", "id"}}, row.id.hex()); });
  });
}

void WriteCommand(HtmlWriter& html, std::string_view what,
                  const std::string& command) {
  html.In("li", {}, [&] {
    html.Element("span", {{"class", "muted"}}, what);
    html.In("pre", {}, [&] { html.Element("code", command); });
  });
}

std::string GetCommand(const PageContext& context, const BundleRow& row,
                       const std::string& folder) {
  return fmt::format("clew get {}{} -o {}", context.client_options,
                     row.id.hex(), folder);
}

// What `clew import` made has no start and no inputs: it can be looked at, and
// not be solved.
void WriteLookCommands(HtmlWriter& html, const std::string& folder) {
  WriteCommand(html, "What was recorded", "clew info " + folder);
  WriteCommand(html, "When each thread ran where",
               "clew decode --as slices " + folder);
}

void WriteReplayCommands(HtmlWriter& html, const std::string& folder,
                         BundleState state) {
  if (state == BundleState::kModelDiffers) {
    WriteCommand(html, "Write down where clew is wrong, to report it",
                 "clew report-bug " + folder);
    return;  // nothing else can be had of it
  }
  if (state != BundleState::kWitness) {
    WriteCommand(html, "Search for an interleaving",
                 "clew solve --time-limit 3600 " + folder);
  }
  WriteCommand(html, "Open gdb on the failing run", "clew replay " + folder);
  WriteCommand(html, "Replay it five times, and compare",
               "clew replay --check 5 " + folder);
}

void WriteCommands(HtmlWriter& html, const PageContext& context,
                   const BundleRow& row) {
  const std::string folder = row.id.hex().substr(0, kShortIdDigits) + ".clew";
  const bool solved = row.state == BundleState::kWitness;
  html.Element("h2", solved ? "Replay it" : "Look into it");
  html.In("ol", {{"class", "commands"}}, [&] {
    WriteCommand(html, "Fetch the bundle", GetCommand(context, row, folder));
    if (row.source == "imported" && !solved) {
      WriteLookCommands(html, folder);
    } else {
      WriteReplayCommands(html, folder, row.state);
    }
  });
}

constexpr Column kPath{"File", "place"};
constexpr Column kSize{"Size", "number"};

void WriteFiles(HtmlWriter& html, const BundleDetails& details) {
  html.Element("h2", "Files");
  if (!details.files) {
    WriteEmpty(html, "The store cannot read the list of files.",
               [&] { html.Foreign(details.files_missing_why); });
    return;
  }
  WriteTable(html, "Files", {kPath, kSize}, [&] {
    for (const FileEntry& file : details.files->files()) {
      html.In("tr", {{"role", "row"}}, [&] {
        WriteCell(html, kPath, [&] { html.Foreign(file.path); });
        WriteCell(html, kSize,
                  [&] { html.Text(FormatBytes(file.size_bytes)); });
      });
    }
  });
}

std::string HeadingOf(const BundleDetails& details) {
  if (details.analysis && !details.analysis->title.empty()) {
    return TitleOf(details.analysis->title, details.row.program,
                   details.row.version);
  }
  return TitleOf(details.row);
}

void WriteOutcome(HtmlWriter& html, const BundleRow& row) {
  WriteState(html, row.state, row.why);
  if (!row.grade.empty()) {
    html.Text(" · ");
    html.Foreign(row.grade);
  }
  if (row.solve_seconds > 0) {
    html.Text(" · solve took " + FormatSeconds(row.solve_seconds));
  }
}

void WriteDamage(HtmlWriter& html, const PageContext& context,
                 const BundleRow& row) {
  if (context.IsDamaged(row.id)) {
    WriteEmpty(html, "Damaged: the collector's disk lost a part of it.", [&] {
      html.Text(
          "It cannot be fetched as it is. Sending it again, or any bundle that "
          "has the same chunk, heals it: ");
      html.Element("code",
                   fmt::format("clew upload {}BUNDLE", context.client_options));
    });
  }
}

void WriteCrumbs(HtmlWriter& html, const BundleRow& row) {
  html.In("p", {{"class", "crumbs"}}, [&] {
    html.Element("a", {{"href", "/"}}, "Groups");
    if (!row.signature.empty()) {
      html.Text(" / ");
      html.In("a", {{"href", "/groups/" + PercentEncode(row.signature)}},
              [&] { html.Text("Group"); });
    }
    html.Text(" / ");
    WriteShortId(html, row.id.hex());
  });
}

}  // namespace

std::string BundlePage(const PageContext& context,
                       const BundleDetails& details) {
  const std::string title = HeadingOf(details);
  return WritePage(title, Section::kBundles, [&](HtmlWriter& html) {
    WriteCrumbs(html, details.row);
    WriteHeading(html, title);
    html.In("p", {{"class", "summary"}},
            [&] { WriteOutcome(html, details.row); });
    WriteDamage(html, context, details.row);
    WriteRaces(html, details.races);
    html.In("div", {{"class", "columns"}}, [&] {
      html.In("section", {},
              [&] { WriteCommands(html, context, details.row); });
      html.In("section", {}, [&] { WriteFacts(html, context, details); });
    });
    html.Element("h2", "Threads");
    WriteThreads(html, details.analysis);
    WriteFiles(html, details);
  });
}

}  // namespace clew::collector::web
