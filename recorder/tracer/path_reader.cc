#include "recorder/tracer/path_reader.h"

#include <algorithm>
#include <atomic>

namespace clew::tracer {
namespace {

// The runtime writes it last.
uint64_t StartOf(const Fragment& fragment) {
  return std::atomic_ref(const_cast<uint64_t&>(fragment.start))
      .load(std::memory_order_acquire);
}

}  // namespace

uint32_t FragmentIndex::Find(uint64_t start) {
  auto found = by_start_.find(start);
  if (found == by_start_.end()) {
    Extend();
    found = by_start_.find(start);
  }
  return found == by_start_.end() ? 0 : found->second;
}

bool FragmentIndex::Add(uint32_t fragment) {
  const uint64_t start = StartOf(shared_.fragments()[fragment]);
  if (start == 0) {
    return false;
  }
  uint32_t& latest = by_start_[start];
  latest = std::max(latest, fragment);
  return true;
}

void FragmentIndex::Extend() {
  std::erase_if(not_written_,
                [this](uint32_t fragment) { return Add(fragment); });
  const auto count = static_cast<uint32_t>(shared_.fragments().size());
  for (; next_ < count; ++next_) {
    if (!Add(next_)) {
      not_written_.push_back(next_);
    }
  }
}

Status PathReader::Read(LogRecord record, const Sink& sink) {
  return (record & kTakenEdge) != 0 ? ReadTaken(record & ~kTakenEdge, sink)
                                    : ReadEntered(record, sink);
}

Result<uint32_t> PathReader::Current(uint32_t expected) {
  const std::span<const Fragment> fragments = shared_.fragments();
  if (fragment_ == 0 && expected != 0 && fragments[expected].start == addr_) {
    fragment_ = expected;
  }
  if (fragment_ == 0) {
    fragment_ = index_.Find(addr_);
  }
  if (fragment_ == 0) {
    return CorruptInput("the log leads to {:#x}, where no code was translated",
                        addr_);
  }
  return fragment_;
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
  sink({falling.start, shared_.code(falling)});
  addr_ = falling.end_target;
  fragment_ = 0;
  return {};
}

Status PathReader::ReadTaken(uint32_t number, const Sink& sink) {
  const std::span<const Edge> edges = shared_.edges();
  const std::span<const Fragment> fragments = shared_.fragments();
  const Edge edge = number < edges.size() ? edges[number] : Edge();
  if (edge.fragment == 0 || edge.fragment >= fragments.size() || !has_begun_) {
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
  sink({fragments[fragment].start, code.first(edge.offset)});
  addr_ = edge.target;
  fragment_ = 0;
  return {};
}

Status PathReader::ReadEntered(uint32_t number, const Sink& sink) {
  const std::span<const Fragment> fragments = shared_.fragments();
  if (number == 0 || number >= fragments.size()) {
    return CorruptInput("a log record names the fragment {}", number);
  }
  if (has_begun_) {
    CLEW_ASSIGN_OR_RETURN(fragment, Current(0));
    while (fragments[fragment].end != FragmentEnd::kIndirect) {
      CLEW_RETURN_IF_ERROR(Fall(fragment, sink));
      CLEW_ASSIGN_OR_RETURN(next, Current(0));
      fragment = next;
    }
    sink({fragments[fragment].start, shared_.code(fragments[fragment])});
  }
  has_begun_ = true;
  addr_ = fragments[number].start;
  fragment_ = number;
  return {};
}

Status PathReader::ReadToCall(uint64_t addr, const Sink& sink) {
  constexpr uint64_t kSyscallBytes = 2;
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
