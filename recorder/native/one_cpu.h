#ifndef CLEW_RECORDER_NATIVE_ONE_CPU_H_
#define CLEW_RECORDER_NATIVE_ONE_CPU_H_

#include <sched.h>

#include <cstdint>
#include <map>
#include <vector>

#include "common/units.h"

namespace clew::recorder {

// Threads of a process that runs, bound to one CPU together with the thread
// that steps them: then a step costs a third.
class OneCpu {
 public:
  // Binds them and the calling thread to a CPU that all may run on. Where there
  // is none they stay as they are: a slower recording is one, too.
  explicit OneCpu(const std::vector<Tid>& threads);

  // Gives a thread back the CPUs that it had; one that was made since, those of
  // the first of `threads`.
  void Release(Tid thread) const;

 private:
  cpu_set_t first_ = {};
  std::map<int32_t, cpu_set_t> had_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_ONE_CPU_H_
