#include "recorder/tracer/free/recording_ring.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "common/os/file.h"
#include "common/text/path_names.h"
#include "recorder/native/start_description.h"
#include "recorder/qemu/calls/file_mappings.h"
#include "recorder/qemu/raw_file.h"
#include "recorder/qemu/tracer.h"

namespace clew::tracer {
namespace {

using recorder::NativeThread;
using recorder::PluginConfig;
using recorder::RawFile;

Status MakeFolder(const std::string& folder) {
  CLEW_RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(folder));
  return PosixFileSystem().CreateDirectory(recorder::RawFolder(folder));
}

// Writes `to` as what is there of `parts`, one after another.
Status Concatenate(const std::vector<std::string>& parts,
                   const std::string& to) {
  CLEW_ASSIGN_OR_RETURN(out, RawFile::Create(to));
  for (const std::string& part : parts) {
    if (Exists(part)) {
      CLEW_ASSIGN_OR_RETURN(bytes, MappedFile::Open(part));
      out.Append(bytes.bytes());
    }
  }
  return out.Close();
}

}  // namespace

std::string RecordingRing::FolderOf(uint64_t half) const {
  return fmt::format("{}/half.{}", recorder::RawFolder(state_.config.folder),
                     half);
}

std::string RecordingRing::FirstFolderOf(uint64_t half) const {
  return fmt::format("{}/first.{}", recorder::RawFolder(state_.config.folder),
                     half);
}

Status RecordingRing::BeginHalf(Start start) {
  CLEW_RETURN_IF_ERROR(EndHalf());
  if (halves_.size() > 1) {
    CLEW_RETURN_IF_ERROR(Drop(halves_.front().number));
    halves_.pop_front();
  }
  const uint32_t cores = state_.tracer->core_count();
  Half half = {.number = halves_.back().number + 1};
  CLEW_RETURN_IF_ERROR(OpenTrace(FirstFolderOf(half.number), cores));
  CLEW_RETURN_IF_ERROR(TellFirst(start));
  state_.folder = FolderOf(half.number);
  CLEW_RETURN_IF_ERROR(OpenTrace(state_.folder, cores));
  for (const auto& thread : state_.threads) {
    CLEW_RETURN_IF_ERROR(state_.OpenInputs(*thread));
  }
  half.start = std::move(start);
  halves_.push_back(std::move(half));
  begun_bytes_ = state_.limit->bytes();
  return {};
}

// Those of half 0 are where a recording without a ring has its own.
Status RecordingRing::EndHalf() {
  Half& half = halves_.back();
  half.insns = state_.CountInsns();
  half.switches = state_.tracer->switches();
  half.inputs_unknown = std::exchange(state_.inputs_unknown, 0);
  state_.insns = 0;
  CLEW_RETURN_IF_ERROR(state_.tracer->Close());
  for (const auto& thread : state_.threads) {
    CLEW_RETURN_IF_ERROR(thread->CloseInputs());
  }
  std::erase_if(state_.threads, [](const std::unique_ptr<NativeThread>& each) {
    return each->state == NativeThread::State::kGone;
  });
  if (half.number != 0) {
    return {};
  }
  FileSystem& files = PosixFileSystem();
  const std::string& from = state_.config.folder;
  const std::string to = FolderOf(0);
  CLEW_RETURN_IF_ERROR(MakeFolder(to));
  for (uint32_t core = 0; core < state_.tracer->core_count(); ++core) {
    CLEW_RETURN_IF_ERROR(files.Rename(recorder::RawPtPath(from, core),
                                      recorder::RawPtPath(to, core)));
  }
  CLEW_ASSIGN_OR_RETURN(inputs, recorder::FindRawInputs(from));
  for (const std::string& part : inputs) {
    CLEW_RETURN_IF_ERROR(files.Rename(
        part, fmt::format("{}/{}", recorder::RawFolder(to), BaseName(part))));
  }
  return files.Rename(recorder::RawEventsPath(from),
                      recorder::RawEventsPath(to));
}

Status RecordingRing::Drop(uint64_t half) {
  CLEW_RETURN_IF_ERROR(PosixFileSystem().RemoveAll(FirstFolderOf(half)));
  return PosixFileSystem().RemoveAll(FolderOf(half));
}

Status RecordingRing::DropAll() {
  for (const Half& half : halves_) {
    CLEW_RETURN_IF_ERROR(Drop(half.number));
  }
  halves_.clear();
  return {};
}

Status RecordingRing::OpenTrace(const std::string& folder, uint32_t cores) {
  CLEW_RETURN_IF_ERROR(MakeFolder(folder));
  PluginConfig config = state_.config;
  config.folder = folder;
  config.scheduler.cores = cores;
  CLEW_ASSIGN_OR_RETURN(tracer,
                        recorder::Tracer::Create(config, *state_.limit));
  state_.tracer = std::move(tracer);
  return {};
}

Status RecordingRing::TellFirst(const Start& start) {
  program_.TellAnew(start.regions);
  for (const Thread& thread : start.threads) {
    state_.tracer->SwitchIn(thread.native->core, thread.native->tid, start.tsc);
  }
  return state_.tracer->Close();
}

Status RecordingRing::Join(recorder::Outcome& outcome) {
  if (halves_.back().number == 0) {
    return {};
  }
  const bool is_dropped = state_.limit->dropped();
  if (is_dropped) {  // what there is now was told anew
    halves_.erase(halves_.begin(), halves_.end() - 1);
  }
  const Half& first = halves_.front();
  std::vector<std::string> folders;
  if (first.start && !is_dropped) {
    folders.push_back(FirstFolderOf(first.number));
  }
  for (const Half& half : halves_) {
    folders.push_back(FolderOf(half.number));
    outcome.insns += half.insns;
    outcome.switches += half.switches;
    outcome.inputs_unknown += half.inputs_unknown;
  }
  const auto join = [&](const auto& path_in) {
    std::vector<std::string> parts;
    parts.reserve(folders.size());
    for (const std::string& folder : folders) {
      parts.push_back(path_in(folder));
    }
    return Concatenate(parts, path_in(state_.config.folder));
  };
  for (uint32_t core = 0; core < outcome.cores; ++core) {
    CLEW_RETURN_IF_ERROR(join([core](const std::string& folder) {
      return recorder::RawPtPath(folder, core);
    }));
  }
  CLEW_RETURN_IF_ERROR(join(recorder::RawEventsPath));
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    CLEW_ASSIGN_OR_RETURN(parts, recorder::FindRawInputs(folder));
    for (const std::string& part : parts) {
      names.emplace(BaseName(part));
    }
  }
  for (const std::string& name : names) {
    CLEW_RETURN_IF_ERROR(join([&name](const std::string& folder) {
      return fmt::format("{}/{}", recorder::RawFolder(folder), name);
    }));
  }
  if (!first.start || is_dropped) {
    return {};
  }
  recorder::FileMappings mapped;
  mapped.Begin(first.start->regions);
  for (const std::string& phrase : mapped.Unlogged()) {
    if (std::ranges::find(outcome.unlogged_inputs, phrase) ==
        outcome.unlogged_inputs.end()) {
      outcome.unlogged_inputs.push_back(phrase);
    }
  }
  return WriteStart(*first.start);
}

// The process is that of its first thread, which may have ended.
Status RecordingRing::WriteStart(const Start& start) {
  StartState state;
  state.initial_stack = TraceeAddr(program_.stack_addr());
  state.brk = TraceeAddr(start.brk);
  state.first.thread = state_.process.first_thread();
  for (const Thread& thread : start.threads) {
    if (thread.start.thread == state.first.thread) {
      state.first = thread.start;
    } else {
      state.others.push_back(thread.start);
    }
  }
  CLEW_ASSIGN_OR_RETURN(memory,
                        recorder::GuestMemory::OpenOf(start.memory.process()));
  return recorder::WriteDescription(recorder::StartPath(state_.config.folder),
                                    state, start.memory.process(),
                                    start.regions, memory);
}

}  // namespace clew::tracer
