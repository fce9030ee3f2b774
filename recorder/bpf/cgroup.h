#ifndef CLEW_RECORDER_BPF_CGROUP_H_
#define CLEW_RECORDER_BPF_CGROUP_H_

#include <cstdint>
#include <string>

#include "common/result.h"

namespace clew::recorder::bpf {

// How BPF programs name a cgroup.
struct Cgroup {
  uint64_t id = 0;
  uint32_t level = 0;  // 0: the root
};

// The cgroup (v2) whose folder is `path`. `mountinfo` has the text of
// /proc/self/mountinfo. kInvalidArgument: no such folder, or none of a cgroup2
// file system that is mounted from its root.
[[nodiscard]] Result<Cgroup> FindCgroup(const std::string& path,
                                        const std::string& mountinfo);

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_CGROUP_H_
