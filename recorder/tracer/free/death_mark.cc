#include "recorder/tracer/free/death_mark.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace clew::tracer {

// Source: linux/futex.h, struct robust_list_head: the word of an entry is
// `futex_offset` behind it.
DeathMark::DeathMark(std::atomic<uint32_t>& word) {
  word.store(static_cast<uint32_t>(gettid()));
  head_.list.next = &futex_;
  futex_.next = &head_.list;
  head_.futex_offset = static_cast<long>(reinterpret_cast<uintptr_t>(&word) -
                                         reinterpret_cast<uintptr_t>(&futex_));
  (void)syscall(SYS_get_robust_list, 0, &before_, &before_bytes_);
  (void)syscall(SYS_set_robust_list, &head_, sizeof(head_));
}

DeathMark::~DeathMark() {
  (void)syscall(SYS_set_robust_list, before_, before_bytes_);
}

}  // namespace clew::tracer
