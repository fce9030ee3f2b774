#include "collector/web/page_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "collector/catalogue/text.h"
#include "collector/web/format.h"
#include "collector/web/http.h"
#include "common/check.h"
#include "common/digest.h"
#include "common/text/hex.h"

namespace clew::collector::web {
namespace {

constexpr size_t kShortVersionBytes = 48;

struct StateWords {
  BundleState state;
  std::string_view name;
  std::string_view meaning;
};
constexpr std::array<StateWords, kBundleStates> kStates = {{
    {BundleState::kStored, "stored", "every byte is here; nothing tried yet"},
    {BundleState::kAnalysing, "analysing", "backtraces are being made"},
    {BundleState::kSolving, "solving", "clew solve is at work"},
    {BundleState::kWitness, "witness",
     "an interleaving was found and replayed to the failure"},
    {BundleState::kContradiction, "contradiction",
     "no interleaving agrees with a recording of which something is lost"},
    {BundleState::kUnsolved, "unsolved", "no answer was found"},
    {BundleState::kModelDiffers, "model-differs",
     "clew's model of the kernel or the CPU differs from what was recorded"},
}};

const StateWords& WordsOf(BundleState state) {
  const auto* found = std::ranges::find(kStates, state, &StateWords::state);
  CLEW_CHECK(found != kStates.end(), "state {} has no words",
             static_cast<int>(state));
  return *found;
}

void WriteNavigation(HtmlWriter& html, Section section) {
  struct Entry {
    Section section;
    const char* path;
    const char* name;
  };
  static constexpr std::array kEntries = {
      Entry{Section::kGroups, "/", "Groups"},
      Entry{Section::kBundles, "/bundles", "Bundles"},
      Entry{Section::kHosts, "/hosts", "Hosts"},
  };
  html.In("header", {{"class", "top"}}, [&] {
    html.Element("a", {{"class", "brand"}, {"href", "/"}}, "clew");
    html.In("nav", {{"aria-label", "Main"}}, [&] {
      for (const Entry& entry : kEntries) {
        if (entry.section == section) {
          html.Element("a", {{"href", entry.path}, {"aria-current", "true"}},
                       entry.name);
        } else {
          html.Element("a", {{"href", entry.path}}, entry.name);
        }
      }
    });
  });
}

void WriteHead(HtmlWriter& html, std::string_view title) {
  html.In("head", {}, [&] {
    html.Void("meta", {{"charset", "utf-8"}});
    html.Void("meta", {{"name", "viewport"},
                       {"content", "width=device-width, initial-scale=1"}});
    html.Void("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
    html.Element("title", fmt::format("{} - clew", title));
    html.Void("link", {{"rel", "stylesheet"}, {"href", StylePath()}});
  });
}

}  // namespace

const std::string& StylePath() {
  static const std::string path = fmt::format(
      "/style-{:016x}.css", Digest(std::as_bytes(std::span(StyleSheet()))));
  return path;
}

std::string WritePage(std::string_view title, Section section,
                      const std::function<void(HtmlWriter&)>& main) {
  HtmlWriter html;
  html.In("html", {{"lang", "en"}}, [&] {
    WriteHead(html, title);
    html.In("body", {}, [&] {
      html.Element("a", {{"class", "skip"}, {"href", "#main"}},
                   "Skip to the content");
      WriteNavigation(html, section);
      html.In("main", {{"id", "main"}}, [&] { main(html); });
      html.In("footer", {}, [&] {
        html.Text("Times are UTC. For machines: ");
        html.Element("a", {{"href", "/metrics"}}, "metrics");
        html.Text(", ");
        html.Element("a", {{"href", "/healthz"}}, "health");
        html.Text(", ");
        html.Element("a", {{"href", "/api/groups.json"}}, "JSON");
      });
    });
  });
  return html.Take();
}

std::string_view StateName(BundleState state) { return WordsOf(state).name; }

void WriteHeading(HtmlWriter& html, std::string_view text) {
  constexpr size_t kLongBytes = 100;
  html.In("h1", {{"class", text.size() > kLongBytes ? "long" : ""}},
          [&] { html.Foreign(text); });
}

std::string FieldOf(const char* name, std::string_view value) {
  return value.empty() ? "" : fmt::format("{}={}&", name, PercentEncode(value));
}

void WriteHiddenFields(HtmlWriter& html, const AddressFields& fields) {
  for (const auto& [name, value] : fields) {
    if (!value.empty()) {
      html.Void("input",
                {{"type", "hidden"}, {"name", name}, {"value", value}});
    }
  }
}

std::string ShortVersion(std::string_view version) {
  if (IsHex(version)) {
    return std::string(version.substr(0, kShortIdDigits));
  }
  return CleanLine(version, kShortVersionBytes);
}

std::string TitleOf(std::string_view title, std::string_view program,
                    std::string_view version) {
  if (program.empty()) {
    return std::string(title);
  }
  const std::string prefix = fmt::format("{}: ", program);
  if (title.starts_with(prefix)) {
    title.remove_prefix(prefix.size());
  }
  return fmt::format("{}{}{}: {}", program, version.empty() ? "" : " ",
                     ShortVersion(version), title);
}

void WriteMark(HtmlWriter& html, const GroupMark& mark) {
  if (mark.resolved) {
    html.In("span", {{"class", "mark resolved"}}, [&] {
      html.Text("resolved");
      if (!mark.resolved_in.empty()) {
        html.Text(" in ");
        html.Foreign(ShortVersion(mark.resolved_in));
      }
    });
  } else if (!mark.reopened_in.empty()) {
    html.In("span", {{"class", "mark again"}}, [&] {
      html.Text("seen again in ");
      html.Foreign(ShortVersion(mark.reopened_in));
    });
  }
}

void WriteState(HtmlWriter& html, BundleState state, std::string_view why) {
  const StateWords& words = WordsOf(state);
  html.Element("span",
               {{"class", fmt::format("state {}", words.name)},
                {"title", std::string(words.meaning)}},
               words.name);
  if (!why.empty()) {
    html.In("span", {{"class", "why"}}, [&] { html.Foreign(why); });
  }
}

void WriteTime(HtmlWriter& html, int64_t time_s, int64_t now_s) {
  if (time_s == 0) {  // imported bundles do not say when
    html.Element("span", {{"class", "muted"}}, "not known");
    return;
  }
  html.Element("time", {{"datetime", FormatTimeIso(time_s)}},
               FormatTime(time_s));
  html.Text(" ");
  html.Element("span", {{"class", "age"}}, FormatAge(time_s, now_s));
}

void WriteShortId(HtmlWriter& html, std::string_view hex) {
  html.Element("code", {{"class", "id"}, {"title", std::string(hex)}},
               hex.substr(0, kShortIdDigits));
}

void WriteEmpty(HtmlWriter& html, std::string_view what,
                const std::function<void()>& advice) {
  html.In("div", {{"class", "empty"}}, [&] {
    html.Element("p", {{"class", "what"}}, what);
    html.In("p", {}, advice);
  });
}

void WriteSearch(HtmlWriter& html, const Search& search) {
  html.In("form",
          {{"class", "search"}, {"role", "search"}, {"action", search.path}},
          [&] {
            WriteHiddenFields(html, search.kept);
            html.Element("label", {{"for", "q"}}, "Search");
            html.Void("input", {{"type", "search"},
                                {"id", "q"},
                                {"name", "q"},
                                {"value", search.text},
                                {"maxlength", "200"},
                                {"placeholder", search.placeholder}});
            html.Element("button", {{"type", "submit"}}, "Search");
            if (!search.text.empty()) {
              html.Element("a", {{"href", search.path}}, search.all);
            }
          });
}

void WriteUploadAdvice(HtmlWriter& html, const PageContext& context) {
  html.Text("Record a failing run and send it: ");
  html.Element("code",
               fmt::format("clew upload {}fail.clew", context.client_options));
  html.Text(". A host with clewd sends its failures by itself.");
}

void WritePaging(HtmlWriter& html, uint64_t offset, uint64_t shown,
                 uint64_t total, const std::string& path_and_query) {
  const auto link = [&](uint64_t to, const char* rel, const char* text) {
    html.Element("a",
                 {{"rel", rel},
                  {"href", fmt::format("{}page={}", path_and_query,
                                       to / kRowsPerPage + 1)}},
                 text);
  };
  html.In("nav", {{"class", "paging"}, {"aria-label", "Pages"}}, [&] {
    html.Element("span", {},
                 fmt::format("{}–{} of {}", FormatCount(offset + 1),
                             FormatCount(offset + shown), FormatCount(total)));
    if (offset >= kRowsPerPage) {
      link(offset - kRowsPerPage, "prev", "← Newer");
    }
    if (offset + shown < total) {
      link(offset + kRowsPerPage, "next", "Older →");
    }
  });
}

}  // namespace clew::collector::web
