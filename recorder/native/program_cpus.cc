#include "recorder/native/program_cpus.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace clew::recorder {
namespace {

cpu_set_t CpusOf(int32_t thread) {
  cpu_set_t cpus = {};
  (void)sched_getaffinity(thread, sizeof(cpus), &cpus);
  return cpus;
}

// The first of `cpus`, but `wanted` if that is one of them; nullopt: there is
// none.
std::optional<uint32_t> OneOf(const cpu_set_t& cpus, int wanted) {
  if (wanted >= 0 && CPU_ISSET(static_cast<size_t>(wanted), &cpus)) {
    return static_cast<uint32_t>(wanted);
  }
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) {
      return cpu;
    }
  }
  return std::nullopt;
}

}  // namespace

ProgramCpus ProgramCpus::OfLaunched(uint32_t cores) {
  ProgramCpus made;
  made.is_launched_ = true;
  made.recorders_ = CpusOf(0);
  for (uint32_t core = 0; core < cores; ++core) {
    CPU_SET(core, &made.all_);
  }
  return made;
}

ProgramCpus ProgramCpus::OfAttached(const std::vector<Tid>& threads) {
  ProgramCpus made;
  cpu_set_t common = CpusOf(0);
  for (const Tid thread : threads) {
    const cpu_set_t cpus = CpusOf(thread.as_int());
    made.seen_.emplace(thread.as_int(), cpus);
    CPU_AND(&common, &common, &cpus);
  }
  if (!threads.empty()) {
    made.all_ = made.SeenBy(threads.front());
  }
  // Of several recorders each has its own, as likely as not.
  const auto cpu = OneOf(common, sched_getcpu());
  if (!cpu) {
    return made;
  }
  cpu_set_t one = {};
  CPU_SET(*cpu, &one);
  made.one_ = one;
  (void)sched_setaffinity(0, sizeof(one), &one);
  for (const Tid thread : threads) {
    (void)sched_setaffinity(thread.as_int(), sizeof(one), &one);
  }
  return made;
}

void ProgramCpus::Inherit(Tid thread, Tid child) {
  seen_[child.as_int()] = SeenBy(thread);
}

std::optional<int64_t> ProgramCpus::Begin(Tid thread, const SyscallCall& call,
                                          const GuestMemory& memory) {
  if (!is_launched_ || call.number != __NR_sched_setaffinity) {
    return std::nullopt;
  }
  const auto meant = Meant(thread, call);
  if (!meant) {
    return std::nullopt;
  }
  cpu_set_t chosen = {};
  if (!memory.Read(call.args[2], &chosen,
                   std::min(call.args[1], sizeof(chosen)))) {
    return -EFAULT;
  }
  CPU_AND(&chosen, &chosen, &all_);
  if (CPU_COUNT(&chosen) == 0) {
    return -EINVAL;
  }
  seen_[meant->as_int()] = chosen;
  return 0;
}

void ProgramCpus::End(Tid thread, uint32_t core, const SyscallCall& call,
                      int64_t result, const GuestMemory& memory) {
  if (result < 0) {
    return;
  }
  if (call.number == __NR_getcpu && call.args[0] != 0) {
    const uint32_t is_on =
        is_launched_ ? core
                     : memory.Load<uint32_t>(call.args[0]).value_or(core);
    const uint32_t shown =
        OneOf(SeenBy(thread), static_cast<int>(is_on)).value_or(is_on);
    (void)memory.Write(call.args[0], &shown, sizeof(shown));
  }
  const auto meant = Meant(thread, call);
  if (!meant) {
    return;
  }
  if (call.number == __NR_sched_getaffinity) {
    const cpu_set_t& cpus = SeenBy(*meant);
    (void)memory.Write(call.args[2], &cpus,
                       std::min(static_cast<size_t>(result), sizeof(cpus)));
  } else if (!is_launched_) {
    Rebind(*meant);
  }
}

void ProgramCpus::Release(Tid thread) const {
  const cpu_set_t& cpus = is_launched_ ? recorders_ : SeenBy(thread);
  (void)sched_setaffinity(thread.as_int(), sizeof(cpus), &cpus);
}

std::optional<Tid> ProgramCpus::Meant(Tid thread,
                                      const SyscallCall& call) const {
  if (call.number != __NR_sched_setaffinity &&
      call.number != __NR_sched_getaffinity) {
    return std::nullopt;
  }
  const auto asked = static_cast<int32_t>(call.args[0]);
  if (asked == 0) {
    return thread;
  }
  return seen_.contains(asked) ? std::optional(Tid(asked)) : std::nullopt;
}

const cpu_set_t& ProgramCpus::SeenBy(Tid thread) const {
  const auto known = seen_.find(thread.as_int());
  return known == seen_.end() ? all_ : known->second;
}

void ProgramCpus::Rebind(Tid thread) {
  seen_[thread.as_int()] = CpusOf(thread.as_int());
  if (one_) {
    (void)sched_setaffinity(thread.as_int(), sizeof(*one_), &*one_);
  }
}

}  // namespace clew::recorder
