#include "follower/recording.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/x86/page.h"

namespace clew::follower {
namespace {

// Compares at most a page and adds to `result`; runs of differing bytes that
// touch are one difference.
void ComparePage(uint64_t addr, std::span<const std::byte> found,
                 std::span<const std::byte> wanted, MemoryComparison& result) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == wanted[i]) {
      ++result.bytes_equal;
      continue;
    }
    auto& differences = result.differences;
    if (!differences.empty() &&
        differences.back().addr + differences.back().size_bytes == addr + i) {
      ++differences.back().size_bytes;
    } else if (differences.size() < MemoryComparison::kDifferencesMax) {
      differences.push_back({.addr = addr + i, .size_bytes = 1});
    }
  }
}

}  // namespace

Result<std::unique_ptr<OpenedRecording>> OpenedRecording::Open(
    const Recording& recording, TapeLimits limits, ProcessOptions options) {
  options.model = recording.model;
  std::unique_ptr<OpenedRecording> session(new OpenedRecording());
  session->code_ = machine::CodeCache(recording.start.cpu_features);
  CLEW_ASSIGN_OR_RETURN(streams, recording.open_streams());
  session->streams_ = std::move(streams);
  CLEW_ASSIGN_OR_RETURN(call_times, recording.open_inputs());
  session->call_times_ = std::move(call_times);
  session->timed_streams_ = std::make_unique<TimedStreams>(
      *session->streams_, *session->call_times_, recording.ran_at_once);
  CLEW_ASSIGN_OR_RETURN(inputs, recording.open_inputs());
  session->inputs_ = std::move(inputs);
  session->tape_ = std::make_unique<Tape>(*session->timed_streams_,
                                          *session->inputs_, limits);
  CLEW_ASSIGN_OR_RETURN(start, Process::Start(recording.start, *session->tape_,
                                              session->code_, options));
  session->start_ = std::make_unique<Process>(std::move(start));
  return session;
}

MemoryComparison CompareMemory(const machine::Memory& memory,
                               std::span<const CoreMemory> core_dump) {
  MemoryComparison result;
  std::array<std::byte, kPageBytes> page;
  for (const CoreMemory& segment : core_dump) {
    for (uint64_t done = 0; done < segment.bytes.size(); done += kPageBytes) {
      const uint64_t size =
          std::min<uint64_t>(kPageBytes, segment.bytes.size() - done);
      const auto found = std::span(page).first(size);
      const uint64_t addr = segment.addr + done;
      if (!memory.Peek(addr, found)) {
        std::ranges::fill(found, std::byte{0});
      }
      ComparePage(addr, found, segment.bytes.subspan(done, size), result);
      result.bytes_compared += size;
    }
  }
  return result;
}

}  // namespace clew::follower
