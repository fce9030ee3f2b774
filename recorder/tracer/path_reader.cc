#include "recorder/tracer/path_reader.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "common/linux/syscall_result.h"

namespace clew::tracer {
namespace {

// The runtime writes it last.
uint64_t StartOf(const Fragment& fragment) {
  return std::atomic_ref(const_cast<uint64_t&>(fragment.start))
      .load(std::memory_order_acquire);
}

}  // namespace

uint32_t FragmentIndex::Find(uint32_t space, uint32_t version, uint64_t start) {
  Extend();
  const std::span<const Fragment> fragments = shared_.fragments();
  const std::span<const Space> spaces = shared_.spaces();
  for (;;) {
    const auto at = latest_.find({space, start});
    uint32_t fragment = at == latest_.end() ? 0 : at->second;
    while (fragment != 0 && fragments[fragment].version > version) {
      const auto earlier = earlier_.find(fragment);
      fragment = earlier == earlier_.end() ? 0 : earlier->second;
    }
    if (fragment != 0 || space == 0 || space >= spaces.size()) {
      return fragment;
    }
    const Space child = spaces[space];
    if (child.parent >= space) {
      return 0;
    }
    space = child.parent;
    version = std::min(version, child.version);
  }
}

bool FragmentIndex::Add(uint32_t number) {
  const Fragment& fragment = shared_.fragments()[number];
  const uint64_t start = StartOf(fragment);
  if (start == 0) {
    return false;
  }
  const auto [at, is_first] = latest_.insert({{fragment.space, start}, number});
  if (!is_first && number > at->second) {
    earlier_[number] = at->second;
    at->second = number;
  }
  return true;
}

void FragmentIndex::Extend() {
  if (shared_.HasForgotten(forgotten_)) {
    latest_.clear();
    earlier_.clear();
    not_written_.clear();
    next_ = 1;
  }
  std::erase_if(not_written_,
                [this](uint32_t fragment) { return Add(fragment); });
  const auto count = static_cast<uint32_t>(shared_.fragments().size());
  for (; next_ < count; ++next_) {
    if (!Add(next_)) {
      not_written_.push_back(next_);
    }
  }
}

Status PathReader::Read(const Batch& batch, const Sink& sink) {
  if (batch.end == BatchEnd::kTold) {  // others read it
    return {};
  }
  const size_t count = std::min(batch.record_count, kBatchRecords);
  CLEW_RETURN_IF_ERROR(
      Read(std::span(batch.records).first(count), batch.version, sink));
  return ReadEnd(batch, sink);
}

Status PathReader::Read(std::span<const LogRecord> records, uint32_t version,
                        const Sink& sink) {
  SetVersion(version);
  for (const LogRecord record : records) {
    CLEW_RETURN_IF_ERROR((record & kTakenEdge) != 0
                             ? ReadTaken(record & ~kTakenEdge, sink)
                             : ReadEntered(record, sink));
  }
  return {};
}

Result<uint32_t> PathReader::Current(uint32_t expected) {
  const std::span<const Fragment> fragments = shared_.fragments();
  if (place_.fragment == 0 && expected != 0 &&
      fragments[expected].start == place_.addr) {
    place_.fragment = expected;
  }
  if (place_.fragment == 0) {
    place_.fragment = index_.Find(space_, version_, place_.addr);
  }
  if (place_.fragment == 0) {
    return CorruptInput("the log leads to {:#x}, where no code was translated",
                        place_.addr);
  }
  return place_.fragment;
}

Status PathReader::Fall(uint32_t fragment, const Sink& sink) {
  const Fragment falling = shared_.fragments()[fragment];
  const bool falls =
      falling.end == FragmentEnd::kFalls || falling.end == FragmentEnd::kCall;
  if (!falls || falling.end_target <= falling.start) {
    return CorruptInput(
        "the log lacks a record behind the fragment {} at {:#x}", fragment,
        falling.start);
  }
  CLEW_RETURN_IF_ERROR(sink({falling.start, shared_.code(falling), fragment}));
  place_.addr = falling.end_target;
  place_.fragment = 0;
  return {};
}

Status PathReader::ReadTaken(uint32_t number, const Sink& sink) {
  const std::span<const Edge> edges = shared_.edges();
  const std::span<const Fragment> fragments = shared_.fragments();
  const Edge edge = number < edges.size() ? edges[number] : Edge();
  if (edge.fragment == 0 || edge.fragment >= fragments.size() ||
      !place_.has_begun) {
    return CorruptInput("a log record names the edge {}", number);
  }
  CLEW_ASSIGN_OR_RETURN(fragment, Current(edge.fragment));
  while (fragment != edge.fragment) {
    CLEW_RETURN_IF_ERROR(Fall(fragment, sink));
    CLEW_ASSIGN_OR_RETURN(next, Current(edge.fragment));
    fragment = next;
  }
  const std::span<const uint8_t> code = shared_.code(fragments[fragment]);
  if (edge.offset > code.size()) {
    return CorruptInput("the edge {} begins behind its fragment {}", number,
                        fragment);
  }
  CLEW_RETURN_IF_ERROR(
      sink({fragments[fragment].start, code.first(edge.offset), fragment}));
  place_.addr = edge.target;
  place_.fragment = 0;
  return {};
}

Status PathReader::ReadEntered(uint32_t number, const Sink& sink) {
  const std::span<const Fragment> fragments = shared_.fragments();
  if (number == 0 || number >= fragments.size()) {
    return CorruptInput("a log record names the fragment {}", number);
  }
  if (place_.has_begun) {
    CLEW_ASSIGN_OR_RETURN(fragment, Current(0));
    while (fragments[fragment].end != FragmentEnd::kIndirect) {
      CLEW_RETURN_IF_ERROR(Fall(fragment, sink));
      CLEW_ASSIGN_OR_RETURN(next, Current(0));
      fragment = next;
    }
    CLEW_RETURN_IF_ERROR(sink({fragments[fragment].start,
                               shared_.code(fragments[fragment]), fragment}));
  }
  place_.has_begun = true;
  place_.addr = fragments[number].start;
  place_.fragment = number;
  return {};
}

Status PathReader::ReadEnd(const Batch& batch, const Sink& sink) {
  switch (batch.end) {
    case BatchEnd::kNothing:
      return {};
    case BatchEnd::kInterrupted:
    case BatchEnd::kChanged:
      CLEW_RETURN_IF_ERROR(ReadBefore(batch.addr, sink));
      break;
    case BatchEnd::kCalled:
      CLEW_RETURN_IF_ERROR(ReadToCall(batch.addr, sink));
      break;
    case BatchEnd::kRan:
      place_.has_begun = false;
      return sink(
          {batch.addr,
           std::span(reinterpret_cast<const uint8_t*>(batch.records.data()),
                     std::min(batch.code_bytes, kBatchBytes))});
    default:
      return CorruptInput("a batch of a log ends with {}, which is nothing",
                          static_cast<uint32_t>(batch.end));
  }
  place_.has_begun = false;
  return {};
}

Status PathReader::ReadBefore(uint64_t addr, const Sink& sink) {
  // Nothing, if the thread was interrupted where it came to no code.
  while (place_.has_begun && place_.addr != addr) {
    CLEW_ASSIGN_OR_RETURN(number, Current(0));
    const Fragment fragment = shared_.fragments()[number];
    const uint64_t start = fragment.start;
    const std::span<const uint8_t> code = shared_.code(fragment);
    if (addr - start < code.size()) {
      return sink({start, code.first(addr - start), number});
    }
    if (fragment.end == FragmentEnd::kIndirect) {
      return sink({start, code, number});  // to `addr`, where is no code
    }
    CLEW_RETURN_IF_ERROR(Fall(number, sink));
  }
  return {};
}

Status PathReader::ReadToCall(uint64_t addr, const Sink& sink) {
  if (!place_.has_begun) {  // it is made once more
    constexpr std::array<uint8_t, kSyscallBytes> kSyscall = {0x0f, 0x05};
    return sink({addr, kSyscall, 0});
  }
  CLEW_ASSIGN_OR_RETURN(fragment, Current(0));
  for (;;) {
    const Fragment current = shared_.fragments()[fragment];
    const bool ends = current.end == FragmentEnd::kCall &&
                      current.end_target == addr + kSyscallBytes;
    CLEW_RETURN_IF_ERROR(Fall(fragment, sink));
    if (ends) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(next, Current(0));
    fragment = next;
  }
}

}  // namespace clew::tracer
