#include "cli/backtrace_text.h"

#include <fmt/format.h>

#include <cstddef>

#include "common/text/one_line.h"

namespace clew::cli {
namespace {

using decoder::Backtrace;
using decoder::BacktraceFrame;
using decoder::ThreadBacktrace;

std::string FrameText(const BacktraceFrame& frame) {
  std::string text = frame.function.empty() ? "??" : Printable(frame.function);
  if (!frame.file.empty()) {
    text += fmt::format(" at {}:{}", Printable(frame.file), frame.line);
  } else if (!frame.module.empty()) {
    text +=
        fmt::format(" from {}+{:#x}", Printable(frame.module), frame.offset);
  }
  return text;
}

std::string StackText(const ThreadBacktrace& thread) {
  std::string text = fmt::format("Thread {}{}:\n", thread.thread,
                                 thread.failed ? " (failed)" : "");
  for (size_t i = 0; i < thread.frames.size(); ++i) {
    text += fmt::format("#{:<3} {:#018x} in {}\n", i, thread.frames[i].pc,
                        FrameText(thread.frames[i]));
  }
  return text + (thread.cut_off ? "(more stack frames follow)\n" : "");
}

}  // namespace

std::string StacksText(const Backtrace& backtrace) {
  std::string text;
  for (const ThreadBacktrace& thread : backtrace.threads) {
    text += (text.empty() ? "" : "\n") + StackText(thread);
  }
  text += backtrace.notes.empty() ? "" : "\n";
  for (const std::string& note : backtrace.notes) {
    text += fmt::format("note: {}\n", Printable(note));
  }
  return text;
}

}  // namespace clew::cli
