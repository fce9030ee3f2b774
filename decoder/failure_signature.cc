#include "decoder/failure_signature.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "common/text/hex.h"
#include "common/text/one_line.h"

namespace clew::decoder {
namespace {

using Frames = std::span<const BacktraceFrame>;

constexpr size_t kTitleNameBytesMax = 120;
constexpr size_t kTitleNamesMax = 3;
constexpr size_t kTitleMessageBytesMax = 300;

// Functions that every failure of a kind goes through, on its way from the
// place that found something wrong to the kernel. They would make all those
// failures alike in half of the frames that count, and which of them are on the
// stack depends on the C library's build, not on the bug.
constexpr std::array kAbortPath = {
    // Raising the signal.
    "raise", "gsignal", "__GI_raise", "pthread_kill", "__pthread_kill",
    "__pthread_kill_implementation", "__pthread_kill_internal", "tgkill",
    "abort", "__GI_abort",
    // assert
    "__assert_fail", "__assert_fail_base", "__assert", "__assert_perror_fail",
    "__GI___assert_fail",
    // What the C library finds wrong: the heap, a buffer, the stack.
    "__libc_message", "__libc_message_impl", "__libc_fatal", "malloc_printerr",
    "__fortify_fail", "__fortify_fail_abort", "__chk_fail", "__GI___chk_fail",
    "__stack_chk_fail", "__stack_chk_fail_local",
    // An exception that is not caught.
    "_ZN9__gnu_cxx27__verbose_terminate_handlerEv",
    "_ZN10__cxxabiv111__terminateEPFvvE", "_ZSt9terminatev", "__cxa_throw",
    "__cxa_rethrow", "__cxa_call_terminate", "__cxa_pure_virtual",
    "__cxa_bad_cast", "__gxx_personality_v0", "_Unwind_RaiseException",
    "_Unwind_Resume",
    // The end by an exit status.
    "exit", "_exit", "_Exit", "quick_exit", "__run_exit_handlers",
    "exit_group"};

// Libraries that have them. A program linked statically has them itself.
constexpr std::array kRuntimes = {"libc.so",    "libc-",        "libpthread",
                                  "ld-musl",    "libstdc++.so", "libc++",
                                  "libgcc_s.so"};
constexpr std::array kCLibraries = {"libc.so", "libc-", "libpthread", "ld-musl",
                                    "ld-linux"};

bool IsOneOf(const std::string& module, std::span<const char* const> names) {
  return std::ranges::any_of(
      names, [&](const char* name) { return module.starts_with(name); });
}

// Names differ in what the assembler or the version of a symbol adds.
bool IsAbortPath(const BacktraceFrame& frame, bool is_static) {
  const std::string_view symbol = frame.symbol;
  const std::string_view name = symbol.substr(0, symbol.find('@'));
  const bool throws = name.starts_with("_ZSt") &&
                      name.find("__throw_") != std::string_view::npos;
  return (is_static || IsOneOf(frame.module, kRuntimes)) &&
         (throws || std::ranges::find(kAbortPath, name) != kAbortPath.end());
}

// How many frames at the top are the abort path's. A stripped C library does
// not name all its functions: those without a name count if named ones of the
// path are on both sides, or below.
size_t AbortPathLength(Frames frames, bool is_static) {
  size_t length = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (IsAbortPath(frames[i], is_static)) {
      length = i + 1;
    } else if (!frames[i].symbol.empty() ||
               !IsOneOf(frames[i].module, kRuntimes)) {
      break;
    }
  }
  return length == frames.size() ? 0 : length;
}

bool IsStatic(const Backtrace& backtrace) {
  return std::ranges::none_of(backtrace.modules, [](const std::string& module) {
    return IsOneOf(module, kCLibraries);
  });
}

Frames WithoutAbortPath(const Backtrace& backtrace,
                        const ThreadBacktrace& thread) {
  const Frames frames = thread.frames;
  return frames.subspan(AbortPathLength(frames, IsStatic(backtrace)));
}

// Rust's legacy mangling ends in a component of a digest of the crate:
// "17h", 16 hexadecimal digits, "E".
std::string_view WithoutRustDigest(std::string_view symbol) {
  constexpr size_t kDigestBytes = 20;
  if (!symbol.starts_with("_ZN") || symbol.size() <= kDigestBytes) {
    return symbol;
  }
  const std::string_view end = symbol.substr(symbol.size() - kDigestBytes);
  const bool is_digest =
      end.starts_with("17h") && end.ends_with('E') && IsHex(end.substr(3, 16));
  return is_digest ? symbol.substr(0, symbol.size() - kDigestBytes) : symbol;
}

// What is the same in the program's next build.
std::string_view StableSymbol(std::string_view symbol) {
  symbol = symbol.substr(0, symbol.find('@'));
  // A first '.' is a name's own, as in ".L1".
  symbol = symbol.substr(0, symbol.find('.', 1));
  return WithoutRustDigest(symbol);
}
std::string_view StableModule(std::string_view module) {
  constexpr std::string_view kSuffix = ".so";
  const size_t at = module.find(".so.");
  return at == std::string_view::npos ? module
                                      : module.substr(0, at + kSuffix.size());
}

std::string LineOf(const BacktraceFrame& frame) {
  if (frame.module.empty()) {
    return "?";
  }
  const std::string module = Printable(StableModule(frame.module));
  if (!frame.symbol.empty()) {
    return fmt::format("{} {}", module, Printable(StableSymbol(frame.symbol)));
  }
  return frame.row_bytes == 0 || IsOneOf(frame.module, kCLibraries)
             ? module + " ?"
             : fmt::format("{} +{:#x} of {:#x}", module, frame.row_offset,
                           frame.row_bytes);
}

std::vector<std::string> LinesOf(Frames frames) {
  std::vector<std::string> lines;
  for (const BacktraceFrame& frame : frames) {
    std::string line = LineOf(frame);
    if (lines.empty() || lines.back() != line) {
      lines.push_back(std::move(line));
    }
    if (lines.size() == kSignatureFrames) {
      break;
    }
  }
  return lines;
}

// The frames in which a thread of a hang waits, seen from the program.
std::vector<const BacktraceFrame*> OwnFrames(const ThreadBacktrace& thread) {
  std::vector<const BacktraceFrame*> own;
  for (const BacktraceFrame& frame : thread.frames) {
    if (own.size() < kHangFrames && !IsOneOf(frame.module, kCLibraries)) {
      own.push_back(&frame);
    }
  }
  if (own.empty()) {
    own.push_back(&thread.frames.front());
  }
  return own;
}

std::vector<std::string> HangLines(const Backtrace& backtrace) {
  std::set<std::string> lines;
  for (const ThreadBacktrace& thread : backtrace.threads) {
    for (const BacktraceFrame* frame : OwnFrames(thread)) {
      lines.insert(LineOf(*frame));
    }
  }
  return {lines.begin(), lines.end()};
}

const ThreadBacktrace* Failing(const Backtrace& backtrace) {
  const auto& threads = backtrace.threads;
  return threads.empty() || !threads[0].failed ? nullptr : &threads[0];
}

std::string KindLine(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kNone:
      return "none";
    case FailureKind::kSignal:
      return fmt::format("signal {}", failure.signal);
    case FailureKind::kExit:
      return fmt::format("exit {}", failure.exit_status);
    case FailureKind::kHang:
    case FailureKind::kTimeLimit:
      return std::string(ToString(failure.kind));
  }
  return "none";
}

std::string NameOf(const BacktraceFrame& frame) {
  if (!frame.function.empty()) {
    return frame.function.substr(0, kTitleNameBytesMax);
  }
  return frame.module.empty()
             ? fmt::format("{:#x}", frame.pc)
             : fmt::format("{}+{:#x}", frame.module, frame.offset);
}

std::string KindTitle(const Failure& failure) {
  const char* name = sigabbrev_np(failure.signal);
  switch (failure.kind) {
    case FailureKind::kNone:
      return "no failure";
    case FailureKind::kSignal:
      return name != nullptr ? fmt::format("SIG{}", name)
                             : fmt::format("signal {}", failure.signal);
    case FailureKind::kExit:
      return fmt::format("exit status {}", failure.exit_status);
    case FailureKind::kHang:
    case FailureKind::kTimeLimit:
      return std::string(ToString(failure.kind));
  }
  return "no failure";
}

// Of these the stacks of all threads count.
bool ThreadsDidNotEnd(const Failure& failure) {
  return failure.kind == FailureKind::kHang ||
         failure.kind == FailureKind::kTimeLimit;
}

// What the threads of a hang wait in, each name once.
std::string HangTitle(const Backtrace& backtrace) {
  std::set<std::string> names;
  for (const ThreadBacktrace& thread : backtrace.threads) {
    names.insert(NameOf(*OwnFrames(thread).front()));
  }
  std::string title;
  size_t count = 0;
  for (const std::string& name : names) {
    if (++count > kTitleNamesMax) {
      return title + ", ...";
    }
    title += (title.empty() ? "" : ", ") + name;
  }
  return title;
}

}  // namespace

std::string SignatureText(const Backtrace& backtrace) {
  std::string text = fmt::format("clew failure {}\n{}\n", kSignatureRules,
                                 KindLine(backtrace.failure));
  std::vector<std::string> lines;
  if (const ThreadBacktrace* failing = Failing(backtrace)) {
    lines = LinesOf(WithoutAbortPath(backtrace, *failing));
  } else if (ThreadsDidNotEnd(backtrace.failure)) {
    lines = HangLines(backtrace);
  }
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

namespace {

// "Assertion `a' failed" of "bank: bank.c:62: main: Assertion `a' failed.\n".
std::string MessageTitle(std::string_view message) {
  const size_t assertion = message.find("Assertion `");
  if (assertion != std::string_view::npos) {
    message.remove_prefix(assertion);
  }
  message = message.substr(0, message.find('\n'));
  while (message.ends_with('.') || message.ends_with(' ')) {
    message.remove_suffix(1);
  }
  return std::string(message.substr(0, kTitleMessageBytesMax));
}

std::string AddressTitle(const Failure& failure) {
  constexpr uint64_t kNearNull = 0x10000;
  const uint64_t addr = failure.addr.as_int();
  return failure.signal == SIGSEGV && addr > 0 && addr < kNearNull
             ? fmt::format(" at {:#x}", addr)
             : "";
}

std::string PlaceTitle(const Backtrace& backtrace) {
  const std::string kind = KindTitle(backtrace.failure);
  if (const ThreadBacktrace* failing = Failing(backtrace)) {
    const Frames frames = WithoutAbortPath(backtrace, *failing);
    return fmt::format("{}{} in {}", kind, AddressTitle(backtrace.failure),
                       NameOf(frames.front()));
  }
  return ThreadsDidNotEnd(backtrace.failure) && !backtrace.threads.empty()
             ? fmt::format("{} in {}", kind, HangTitle(backtrace))
             : kind;
}

}  // namespace

std::string FailureTitle(const Backtrace& backtrace) {
  const std::string message = MessageTitle(backtrace.message);
  const std::string place = PlaceTitle(backtrace);
  const std::string what =
      message.empty() ? place : fmt::format("{} ({})", message, place);
  return backtrace.program.name.empty()
             ? what
             : fmt::format("{}: {}",
                           backtrace.program.name.substr(0, kTitleNameBytesMax),
                           what);
}

}  // namespace clew::decoder
