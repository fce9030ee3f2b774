#include "follower/tape.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/linux/syscall_table.h"

namespace clew::follower {

Tape::Tape(StreamSource& streams, InputSource& inputs, TapeLimits limits)
    : streams_(streams),
      inputs_(inputs),
      limits_(limits),
      tids_(streams.threads()),
      threads_(tids_.size()) {
  for (size_t i = 0; i < tids_.size(); ++i) {
    index_.emplace(tids_[i], i);
  }
}

std::optional<size_t> Tape::IndexOf(Tid tid) const {
  const auto found = index_.find(tid);
  if (found == index_.end()) {
    return std::nullopt;
  }
  return found->second;
}

Status Tape::CheckRoom() const {
  if (items_ >= limits_.items_max) {
    return LimitReached(
        "more than {} recorded items would be held at once; raise the limit "
        "with --tape-items",
        limits_.items_max);
  }
  return {};
}

Status Tape::Append(size_t thread, const StreamBlock& block) {
  if (block.code_bits != 64) {
    return Unsupported(
        "thread {} at {:#x}: {}-bit code, which is not solved: the machine has "
        "64-bit instructions alone",
        tids_[thread], block.ip, block.code_bits);
  }
  threads_[thread].blocks.items.push_back(block);
  ++items_;
  return {};
}

Result<const StreamBlock*> Tape::Block(size_t thread, uint64_t position) {
  ThreadTape& tape = threads_[thread];
  auto& window = tape.blocks;
  CLEW_CHECK(position >= window.first, "block {} of thread {} was forgotten",
             position, tids_[thread]);
  while (position >= window.first + window.items.size()) {
    if (tape.gap) {
      return Unsupported(
          "thread {}: the trace has a gap at core {} aux offset {:#x} ({}); "
          "following across gaps is not supported",
          tids_[thread], tape.gap->core, tape.gap->aux_offset,
          tape.gap->detail);
    }
    if (window.ended) {
      return nullptr;
    }
    CLEW_RETURN_IF_ERROR(CheckRoom());
    CLEW_ASSIGN_OR_RETURN(item, streams_.Next(tids_[thread]));
    if (!item) {
      window.ended = true;
    } else if (auto* gap = std::get_if<Gap>(&*item)) {
      tape.gap = std::move(*gap);
    } else {
      CLEW_RETURN_IF_ERROR(Append(thread, std::get<StreamBlock>(*item)));
    }
  }
  return &window.items[position - window.first];
}

namespace {

std::unexpected<Error> CannotFollow(Tid tid, uint64_t position,
                                    const UnknownInput& unknown) {
  const std::string call =
      unknown.call_number ? SyscallName(*unknown.call_number) + ", " : "";
  return Unsupported(
      "thread {}: input {} is unknown ({}{} in all: {}); following past it is "
      "not supported",
      tid, position, call, unknown.count, unknown.cause);
}

}  // namespace

Result<const InputRecord*> Tape::Input(size_t thread, uint64_t position) {
  auto& window = threads_[thread].inputs;
  CLEW_CHECK(position >= window.first, "input {} of thread {} was forgotten",
             position, tids_[thread]);
  while (position >= window.first + window.items.size()) {
    if (window.ended) {
      return nullptr;
    }
    CLEW_RETURN_IF_ERROR(CheckRoom());
    CLEW_ASSIGN_OR_RETURN(record, inputs_.Next(tids_[thread]));
    if (record) {
      window.items.push_back(std::move(*record));
      ++items_;
    } else {
      window.ended = true;
    }
  }
  const InputRecord& record = window.items[position - window.first];
  if (const auto* const unknown = std::get_if<UnknownInput>(&record)) {
    return CannotFollow(tids_[thread], position, *unknown);
  }
  return &record;
}

bool Tape::HasBeginning() const {
  return std::ranges::all_of(
      threads_, [](const ThreadTape& tape) { return tape.blocks.first == 0; });
}

void Tape::Forget(size_t thread, uint64_t block_position,
                  uint64_t input_position) {
  const auto trim = [this](auto& window, uint64_t position) {
    while (window.first < position && !window.items.empty()) {
      window.items.pop_front();
      ++window.first;
      --items_;
    }
  };
  trim(threads_[thread].blocks, block_position);
  trim(threads_[thread].inputs, input_position == 0 ? 0 : input_position - 1);
}

}  // namespace clew::follower
