#include "follower/guess.h"

#include <algorithm>

#include "common/check.h"
#include "common/digest.h"

namespace clew::follower {

Guess::Guess(const Process& process, GuessOptions options)
    : options_(options), groups_(process.thread_count()) {}

Result<const Guess::Group*> Guess::GroupOf(const Process& process,
                                           size_t thread) {
  const ThreadState& state = process.thread(thread);
  Group& group = groups_[thread];
  if (state.block >= group.first_block && state.block < group.end_block) {
    return &group;
  }
  Tape& tape = process.tape();
  CLEW_ASSIGN_OR_RETURN(first_at, tape.Block(thread, state.block));
  CLEW_CHECK(first_at != nullptr, "no guess at the end of a stream");
  const StreamBlock first = *first_at;
  group = {.first_block = state.block,
           .end_block = state.block,
           .first_insn = state.retired - state.block_done,
           .insn_count = 0,
           .begin_tick = static_cast<double>(first.time.lo.as_int()),
           .end_tick = static_cast<double>(first.time.hi.as_int())};
  uint64_t hi = first.time.hi.as_int();
  while (true) {
    const uint64_t next = group.end_block;
    if (next > group.first_block && !tape.HasBlock(thread, next)) {
      const TscTicks bound = tape.NotBefore(thread);
      if (bound >
          first.time.lo) {  // another group's, and perhaps far to decode
        group.end_tick = static_cast<double>(std::min(hi, bound.as_int()));
        break;
      }
    }
    CLEW_ASSIGN_OR_RETURN(block, tape.Block(thread, next));
    if (block == nullptr) {
      group.end_tick = static_cast<double>(hi);
      break;
    }
    if (block->time.lo != first.time.lo) {
      group.end_tick = static_cast<double>(std::min(
          hi, std::max(block->time.lo.as_int(), first.time.lo.as_int() + 1)));
      break;
    }
    hi = std::max(hi, block->time.hi.as_int());
    group.insn_count += block->insn_count;
    ++group.end_block;
  }
  return &group;
}

Result<double> Guess::KeyOf(const Process& process, size_t thread) {
  CLEW_ASSIGN_OR_RETURN(group, GroupOf(process, thread));
  const double share =
      static_cast<double>(process.thread(thread).retired - group->first_insn) /
      static_cast<double>(group->insn_count);
  return group->begin_tick + share * (group->end_tick - group->begin_tick);
}

Result<uint64_t> Guess::GroupEnd(const Process& process, size_t thread) {
  CLEW_ASSIGN_OR_RETURN(group, GroupOf(process, thread));
  return group->first_insn + group->insn_count;
}

Result<uint64_t> Guess::GrainEnd(const Process& process, size_t thread) {
  CLEW_ASSIGN_OR_RETURN(group, GroupOf(process, thread));
  const uint64_t retired = process.thread(thread).retired;
  const uint64_t grain = std::max<uint64_t>(options_.grain_insns, 2);
  const uint64_t jitter =
      MixBits(options_.seed ^ MixBits(retired * 64 + thread)) % grain;
  return std::min(retired + grain / 2 + std::max<uint64_t>(jitter, 1),
                  group->first_insn + group->insn_count);
}

}  // namespace clew::follower
