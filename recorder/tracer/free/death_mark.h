#ifndef CLEW_RECORDER_TRACER_FREE_DEATH_MARK_H_
#define CLEW_RECORDER_TRACER_FREE_DEATH_MARK_H_

#include <linux/futex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace clew::tracer {

// As long as this exists, the kernel sets FUTEX_OWNER_DIED in a word of shared
// memory when the thread that made this dies, by SIGKILL too: whoever sees the
// word need not be able to see the thread, as from another PID namespace.
//
// The word is that of a robust futex which the thread holds
// (set_robust_list(2)). What the list needs besides is in memory of this
// process, so that who may write the word can do no more than deceive its
// readers. The thread takes no robust mutex of the C library meanwhile, whose
// list this takes the place of.
class DeathMark {
 public:
  explicit DeathMark(std::atomic<uint32_t>& word);
  DeathMark(const DeathMark&) = delete;
  DeathMark& operator=(const DeathMark&) = delete;
  // REQUIRES: the same thread.
  ~DeathMark();

 private:
  robust_list_head head_ = {};
  robust_list futex_ = {};
  robust_list_head* before_ = nullptr;
  size_t before_bytes_ = 0;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_DEATH_MARK_H_
