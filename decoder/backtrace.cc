#include "decoder/backtrace.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "common/build_id.h"
#include "common/linux/deviations.h"
#include "common/os/file.h"
#include "common/text/path_names.h"
#include "decoder/assertion.h"
#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::CoreDump;
using bundle::DumpThread;

using Clock = Unwinder::Clock;

BacktraceFrame FrameAt(const LoadedImages& images, Unwinder& unwinder,
                       const Unwinder::Frame& at, bool with_names) {
  BacktraceFrame frame = {.pc = at.pc, .offset = at.pc.as_int()};
  const LoadedImage* image = images.Find(at.place());
  if (image == nullptr) {
    return frame;
  }
  frame.module = BaseName(image->path);
  frame.build_id = image->build_id;
  frame.offset = at.pc.as_int() - image->bias;
  if (with_names && !image->file.empty()) {
    CodePlace place = unwinder.Find(at.place());
    frame.function = ReadableName(place.symbol);
    frame.symbol = std::move(place.symbol);
    frame.row_offset = place.row_offset;
    frame.row_bytes = place.row_bytes;
    frame.file = std::move(place.file);
    frame.line = place.line;
  }
  return frame;
}

// Which thread of the dump failed: the one that the manifest names; if it is
// not in the dump (an imported one may number threads as another namespace
// does), that which the dump has first, as the kernel writes it. None where no
// thread is to blame.
std::optional<size_t> FailingThread(const Failure& failure,
                                    const std::vector<DumpThread>& threads) {
  const auto named =
      std::ranges::find(threads, failure.thread, &DumpThread::thread);
  if (!HasFailingThread(failure.kind)) {
    return std::nullopt;
  }
  return named == threads.end() ? 0 : named - threads.begin();
}

class Reader {
 public:
  Reader(const LoadedImages& images, const CoreDump& core,
         const BacktraceLimits& limits)
      : images_(images),
        limits_(limits),
        deadline_(Clock::now() + limits.time_max),
        unwinder_(images, &core) {}

  void Add(const DumpThread& thread, bool failed, Backtrace& to) {
    Unwinder::Stack stack =
        unwinder_.Unwind(thread, limits_.frames_max, deadline_);
    ThreadBacktrace& backtrace = to.threads.emplace_back(ThreadBacktrace{
        .thread = thread.thread, .failed = failed, .cut_off = stack.cut_off});
    for (const Unwinder::Frame& frame : stack.frames) {
      late_ = late_ || Clock::now() >= deadline_;
      backtrace.frames.push_back(FrameAt(images_, unwinder_, frame, !late_));
    }
  }
  std::string AbortMessage() { return unwinder_.AbortMessage(); }
  bool late() const { return late_ || Clock::now() >= deadline_; }

 private:
  const LoadedImages& images_;
  const BacktraceLimits& limits_;
  Clock::time_point deadline_;
  Unwinder unwinder_;
  bool late_ = false;
};

// Images that a frame is in and the bundle does not have.
void NoteAbsent(const LoadedImages& images, Backtrace& backtrace) {
  std::set<const LoadedImage*> absent;
  for (const ThreadBacktrace& thread : backtrace.threads) {
    for (const BacktraceFrame& frame : thread.frames) {
      const LoadedImage* image = images.Find(frame.pc);
      if (image != nullptr && image->file.empty()) {
        absent.insert(image);
      }
    }
  }
  std::set<std::string> lines;
  for (const LoadedImage* image : absent) {
    lines.insert(fmt::format(
        "{}, build-id {}: {}; its frames have no names, and stacks may end at "
        "it",
        image->path, image->build_id.empty() ? "unknown" : image->build_id,
        image->why));
  }
  backtrace.notes.insert(backtrace.notes.end(), lines.begin(), lines.end());
}

void ListModules(const LoadedImages& images, Backtrace& backtrace) {
  std::set<std::string> names;
  for (const LoadedImage& image : images.all()) {
    names.insert(BaseName(image.path));
  }
  backtrace.modules.assign(names.begin(), names.end());
}

// "version" of the package note, a JSON object.
std::string PackageVersionIn(const std::string& file) {
  const auto bytes = MappedFile::Open(file);
  const auto note = nlohmann::json::parse(
      bytes ? PackageNoteOf(bytes->bytes()) : "", nullptr, false);
  if (!note.is_object() || !note.contains("version") ||
      !note["version"].is_string()) {
    return "";
  }
  std::string version = note["version"];
  const bool plain =
      std::ranges::all_of(version, [](char c) { return c >= ' ' && c <= '~'; });
  return plain && version.size() <= kVersionBytesMax ? version : "";
}

FailedProgram ProgramIn(const LoadedImage& image) {
  const std::string version =
      image.file.empty() ? "" : PackageVersionIn(image.file);
  return {.name = BaseName(image.path),
          .build_id = image.build_id,
          .version = version.empty() ? image.build_id : version};
}

// The image with the entry point; where no dump tells it, that by whose name
// the program was called.
FailedProgram ProgramOf(const Bundle& bundle, const LoadedImages& images,
                        TraceeAddr entry) {
  const LoadedImage* image = images.Find(entry);
  const std::vector<std::string>& command = bundle.manifest().command;
  if (image == nullptr && !command.empty()) {
    const auto named = std::ranges::find(
        images.all(), BaseName(command.front()),
        [](const LoadedImage& i) { return BaseName(i.path); });
    image = named == images.all().end() ? nullptr : &*named;
  }
  if (image == nullptr) {
    return {.name = command.empty() ? "" : BaseName(command.front())};
  }
  return ProgramIn(*image);
}

// What redaction kept, if it is what it should be.
std::string KeptAssertion(const Bundle& bundle) {
  const auto kept = ParseAssertion(bundle.manifest().assertion);
  return kept ? ToString(*kept) : "";
}

Result<Backtrace> FromCore(const Bundle& bundle, const CoreDump& core,
                           const BacktraceLimits& limits) {
  CLEW_ASSIGN_OR_RETURN(images, LoadedImages::FromCore(bundle, core));
  Backtrace backtrace = {.failure = bundle.manifest().failure};
  const std::vector<DumpThread>& threads = core.threads();
  const auto failing = FailingThread(backtrace.failure, threads);
  Reader reader(images, core, limits);
  if (failing) {
    reader.Add(threads[*failing], true, backtrace);
  }
  for (size_t i = 0;
       i < threads.size() && backtrace.threads.size() < limits.threads_max;
       ++i) {
    if (i != failing) {
      reader.Add(threads[i], false, backtrace);
    }
  }
  backtrace.program = ProgramOf(bundle, images, core.entry());
  if (backtrace.failure.kind == FailureKind::kSignal &&
      backtrace.failure.signal == SIGABRT) {
    backtrace.message = reader.AbortMessage();
    if (backtrace.message.empty()) {
      backtrace.message = KeptAssertion(bundle);
    }
  }
  if (backtrace.threads.size() < threads.size()) {
    backtrace.notes.push_back(
        fmt::format("{} threads are left out, of {}",
                    threads.size() - backtrace.threads.size(), threads.size()));
  }
  if (reader.late()) {
    backtrace.notes.push_back(fmt::format(
        "after {} ms the rest has no names and no callers: the time limit",
        limits.time_max.count()));
  }
  NoteAbsent(images, backtrace);
  ListModules(images, backtrace);
  return backtrace;
}

Result<Backtrace> FromManifest(const Bundle& bundle) {
  Backtrace backtrace = {.failure = bundle.manifest().failure};
  backtrace.notes.push_back(
      "the bundle has no core dump: the failing instruction alone is known");
  const Failure& failure = backtrace.failure;
  if (failure.ip == TraceeAddr(0) && failure.thread == Tid(0)) {
    return backtrace;
  }
  CLEW_ASSIGN_OR_RETURN(images, LoadedImages::FromTrace(bundle));
  backtrace.program = ProgramOf(bundle, images, TraceeAddr(0));
  Unwinder unwinder(images, nullptr);
  backtrace.threads.push_back(
      {.thread = failure.thread,
       .failed = true,
       .frames = {FrameAt(images, unwinder, {.pc = failure.ip}, true)},
       .cut_off = true});
  NoteAbsent(images, backtrace);
  ListModules(images, backtrace);
  return backtrace;
}

Result<Backtrace> ReadStacks(const Bundle& bundle,
                             const BacktraceLimits& limits) {
  const std::string path = bundle.core_path();
  if (path.empty()) {
    return FromManifest(bundle);
  }
  CLEW_ASSIGN_OR_RETURN(core, CoreDump::Open(path, limits.core_bytes_max));
  return FromCore(bundle, core, limits);
}

}  // namespace

Result<Backtrace> ReadBacktrace(const Bundle& bundle,
                                const BacktraceLimits& limits) {
  CLEW_ASSIGN_OR_RETURN(backtrace, ReadStacks(bundle, limits));
  const auto& deviations = bundle.manifest().deviations;
  if (!deviations.empty()) {
    backtrace.notes.insert(backtrace.notes.begin(),
                           "the failure " + RecordersDoubt(deviations));
  }
  return std::move(backtrace);
}

}  // namespace clew::decoder
