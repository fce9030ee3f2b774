#include "collector/web/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "collector/web/backtraces.h"
#include "collector/web/format.h"
#include "collector/web/page_frame.h"
#include "collector/web/tables.h"

namespace clew::collector::web {

std::string PlaceOf(const Frame& frame) {
  if (frame.file.empty()) {
    return "";
  }
  return frame.line == 0 ? frame.file
                         : fmt::format("{}:{}", frame.file, frame.line);
}

namespace {

constexpr Column kNumber{"#", "index"};
constexpr Column kFunction{"Function", "function"};
constexpr Column kFrameSource{"Source", "place"};
constexpr Column kModule{"Module", "place"};

void WriteFrame(HtmlWriter& html, size_t number, const Frame& frame) {
  html.In("tr", {{"role", "row"}}, [&] {
    WriteCell(html, kNumber, [&] { html.Text(std::to_string(number)); });
    WriteCell(html, kFunction, [&] {
      if (frame.function.empty()) {
        html.Element("span", {{"class", "muted"}}, "not known");
      } else {
        html.Foreign(frame.function);
      }
    });
    WriteCell(html, kFrameSource, [&] {
      if (const std::string place = PlaceOf(frame); !place.empty()) {
        html.Foreign(place);
      }
    });
    WriteCell(html, kModule, [&] {
      html.In("span", {{"title", "build-id " + frame.build_id}}, [&] {
        html.Foreign(frame.module);
        html.Text(frame.offset.empty() ? "" : " +" + frame.offset);
      });
    });
  });
}

void WriteRemark(HtmlWriter& html, std::string_view text) {
  html.In("p", {{"class", "muted"}}, [&] { html.Foreign(text); });
}

void WriteSummary(HtmlWriter& html, const ThreadTrace& thread) {
  html.In("summary", {}, [&] {
    html.Text(fmt::format("Thread {}", thread.thread));
    if (thread.failed) {
      html.Element("span", {{"class", "failed"}}, "failed here");
    }
    const auto named = std::ranges::find_if(
        thread.frames, [](const Frame& f) { return !f.function.empty(); });
    if (named != thread.frames.end()) {
      html.In("span", {{"class", "muted"}},
              [&] { html.Foreign("in " + named->function); });
    }
  });
}

void WriteFrames(HtmlWriter& html, const ThreadTrace& thread) {
  if (thread.frames.empty()) {
    WriteRemark(html, "No frame could be found.");
    return;
  }
  WriteTable(html, "Frames, innermost first",
             {kNumber, kFunction, kFrameSource, kModule}, [&] {
               for (size_t i = 0; i < thread.frames.size(); ++i) {
                 WriteFrame(html, i, thread.frames[i]);
               }
             });
  if (thread.frames_left_out > 0) {
    WriteRemark(html, fmt::format("{} more frames are not shown.",
                                  FormatCount(thread.frames_left_out)));
  }
  if (thread.cut_off) {
    WriteRemark(html, "The stack goes on beyond these frames.");
  }
}

void WriteThread(HtmlWriter& html, const ThreadTrace& thread) {
  const auto content = [&] {
    WriteSummary(html, thread);
    WriteFrames(html, thread);
  };
  if (thread.failed) {
    html.In("details", {{"class", "thread"}, {"open", ""}}, content);
  } else {
    html.In("details", {{"class", "thread"}}, content);
  }
}

}  // namespace

void WriteThreads(HtmlWriter& html, const std::optional<Analysis>& analysis) {
  if (!analysis) {
    WriteEmpty(html, "No backtraces yet.", [&] {
      html.Text(
          "They are made soon after a bundle has arrived; this page "
          "shows them when it is loaded again.");
    });
    return;
  }
  const Backtraces backtraces = ParseBacktraces(analysis->backtraces);
  if (!backtraces.understood || backtraces.threads.empty()) {
    WriteEmpty(html, "No backtraces could be made of this bundle.", [&] {
      html.Text("Fetch it and see why: ");
      html.Element("code", "clew backtrace");
    });
    return;
  }
  for (const ThreadTrace& thread : backtraces.threads) {
    WriteThread(html, thread);
  }
  if (backtraces.threads_left_out > 0) {
    WriteRemark(html, fmt::format("{} more threads are not shown.",
                                  FormatCount(backtraces.threads_left_out)));
  }
  for (const std::string& note : backtraces.notes) {
    WriteRemark(html, note);
  }
}

void WriteFailingThread(HtmlWriter& html,
                        const std::optional<Analysis>& analysis) {
  if (!analysis) {
    return;
  }
  const Backtraces backtraces = ParseBacktraces(analysis->backtraces);
  // Failed ones come first.
  if (!backtraces.threads.empty() && backtraces.threads.front().failed) {
    html.Element("h2", "Where it failed");
    WriteThread(html, backtraces.threads.front());
  }
}

}  // namespace clew::collector::web
