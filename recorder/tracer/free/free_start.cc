#include "recorder/tracer/free/free_start.h"

#include <sys/user.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "common/linux/raw_rules.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/places.h"

namespace clew::tracer {
namespace {

using recorder::NativeState;

void FillRules(InputRules& rules) {
  for (uint64_t number = 0; number < rules.calls.size(); ++number) {
    rules.calls[number] = RuleFor(number);
  }
  const std::vector<RawRequestRule> requests = RequestRules();
  rules.request_count =
      static_cast<uint32_t>(std::min(requests.size(), rules.requests.size()));
  std::copy_n(requests.begin(), rules.request_count, rules.requests.begin());
}

// Whether its threads have other numbers there than here (proc(5), NSpid).
bool IsInNamespace(const TracedProcess& process) {
  std::istringstream status(process.ProcText("status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) {
      return std::ranges::count(line, '\t') > 1;
    }
  }
  return false;
}

Status CheckProcess(const TracedProcess& process) {
  if (process.has_filters()) {
    return Unsupported(
        "process {} has filters of system calls (seccomp), under which the "
        "tracer's would come; record it without --free",
        process.process());
  }
  if (IsInNamespace(process)) {
    return Unsupported(
        "process {} has a PID namespace of its own (a container?), where the "
        "trace cannot tell its threads; record it without --free",
        process.process());
  }
  return {};
}

// What a thread had before it was let begin in the runtime.
struct Before {
  Tid tid;
  user_regs_struct registers = {};
  uint64_t mask = 0;
};

Result<std::vector<Before>> LookAtThreads(const NativeState& state) {
  std::vector<Before> all;
  for (const auto& thread : state.threads) {
    Before before = {.tid = thread->tid};
    CLEW_ASSIGN_OR_RETURN(registers, state.process.Registers(thread->tid));
    if (registers.gs_base != 0) {
      return Unsupported("thread {} uses GS, which the tracer needs",
                         thread->tid);
    }
    before.registers = registers;
    CLEW_ASSIGN_OR_RETURN(mask, state.process.SignalMask(thread->tid));
    before.mask = mask;
    all.push_back(before);
  }
  return all;
}

// The runtime, and what it is to know. Signals wait until a thread has begun
// there.
Status Bring(NativeState& state, const std::vector<Before>& threads,
             SharedMemory& shared) {
  TracedProcess& process = state.process;
  SharedHeader& header = shared.header();
  header.tells_inputs = 1;
  header.hands_over = state.take_child ? 1 : 0;
  header.answers_rseq = state.has_rseq ? 1 : 0;
  header.maps_files = state.files.maps_shared_memory() ? 1 : 0;
  FillRules(shared.rules());
  CLEW_RETURN_IF_ERROR(Inject(process, shared));
  for (size_t i = 0; i < threads.size(); ++i) {
    const Tid tid = threads[i].tid;
    uint32_t slot = 0;
    if (tid != process.first_thread()) {
      CLEW_ASSIGN_OR_RETURN(joined, Join(process, tid, shared));
      slot = joined;
    }
    ThreadState& its = shared.slot(slot).state;
    its.signals.is_holding = 1;
    its.signals.held_mask = threads[i].mask;
    its.tell.clear_tid = state.threads[i]->clear_tid_addr;
    CLEW_RETURN_IF_ERROR(process.SetSignalMask(tid, UINT64_MAX));
  }
  return {};
}

}  // namespace

Status StartFree(NativeState& state, SharedMemory& shared) {
  TracedProcess& process = state.process;
  CLEW_RETURN_IF_ERROR(CheckProcess(process));
  CLEW_ASSIGN_OR_RETURN(threads, LookAtThreads(state));
  const Status is_in = Bring(state, threads, shared);
  if (!is_in) {
    for (const Before& before : threads) {  // why it failed is told
      (void)process.SetRegisters(before.tid, before.registers);
      (void)process.SetSignalMask(before.tid, before.mask);
    }
    if (shared.header().slots.load() != 0) {
      (void)TakeOut(process, process.first_thread(), shared);
    }
    return is_in;
  }
  state.hidden = MemoryOf(shared.header().places);
  state.insns = 0;
  return {};
}

}  // namespace clew::tracer
