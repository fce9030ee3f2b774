#include "recorder/native/one_cpu.h"

namespace clew::recorder {
namespace {

cpu_set_t CpusOf(int32_t thread) {
  cpu_set_t cpus = {};
  (void)sched_getaffinity(thread, sizeof(cpus), &cpus);
  return cpus;
}

}  // namespace

OneCpu::OneCpu(const std::vector<Tid>& threads) {
  cpu_set_t common = CpusOf(0);
  for (const Tid thread : threads) {
    const cpu_set_t cpus = CpusOf(thread.as_int());
    had_.emplace(thread.as_int(), cpus);
    CPU_AND(&common, &common, &cpus);
  }
  if (!threads.empty()) {
    first_ = had_[threads.front().as_int()];
  }
  // Of several recorders each has its own, as likely as not.
  const int own = sched_getcpu();
  size_t cpu =
      own >= 0 && CPU_ISSET(own, &common) ? static_cast<size_t>(own) : 0;
  while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &common)) {
    ++cpu;
  }
  if (cpu == CPU_SETSIZE) {
    return;
  }
  cpu_set_t one = {};
  CPU_SET(cpu, &one);
  (void)sched_setaffinity(0, sizeof(one), &one);
  for (const Tid thread : threads) {
    (void)sched_setaffinity(thread.as_int(), sizeof(one), &one);
  }
}

void OneCpu::Release(Tid thread) const {
  const auto known = had_.find(thread.as_int());
  const cpu_set_t& cpus = known == had_.end() ? first_ : known->second;
  (void)sched_setaffinity(thread.as_int(), sizeof(cpus), &cpus);
}

}  // namespace clew::recorder
