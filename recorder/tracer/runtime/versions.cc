#include "recorder/tracer/runtime/versions.h"

#include <algorithm>
#include <utility>

#include "common/x86/page.h"
#include "recorder/tracer/runtime/threads.h"
#include "recorder/tracer/runtime/ways.h"

namespace clew::tracer {
namespace {

// The threads do not find it by its address any more.
void ForgetTarget(Runtime& runtime, uint64_t target) {
  ForEachThread(runtime, [&](ThreadState& thread) {
    LookupEntry& entry = LookupFor(thread, target);
    if (entry.negated == -target) {
      __atomic_store_n(&entry.negated, 0, __ATOMIC_RELEASE);
    }
  });
}

void DropFragment(Runtime& runtime, uint32_t number) {
  Translation& translation = runtime.translations[number];
  translation.dropped = true;
  if (translation.indirect_entry != 0) {
    ForgetTarget(runtime, runtime.fragment(number).start);
  }
  for (uint32_t edge = std::exchange(translation.first_way_in, 0); edge != 0;
       edge = runtime.ways[edge].next) {
    runtime.ways[edge].is_linked = false;
    SetJump(runtime.ways[edge].jump, runtime.ways[edge].exit);
  }
}

// One without code is of what was found where it starts.
uint64_t BytesOf(const Fragment& fragment) {
  return std::max<uint64_t>(fragment.code_bytes, 1);
}

uint32_t PageHash(uint64_t addr) {
  return addr / kPageBytes & ((1u << Runtime::kPageHashBits) - 1);
}

// Those of one hash. Returns whether there was one.
bool DropOfPage(Runtime& runtime, uint32_t hash, uint64_t begin, uint64_t end) {
  bool has_dropped = false;
  uint32_t* link = &runtime.by_page[hash];
  while (*link != 0) {
    Translation& translation = runtime.translations[*link];
    const Fragment& fragment = runtime.fragment(*link);
    if (fragment.start + BytesOf(fragment) <= begin || fragment.start >= end) {
      link = &translation.next_on_page;
      continue;
    }
    DropFragment(runtime, *link);
    *link = translation.next_on_page;
    has_dropped = true;
  }
  return has_dropped;
}

}  // namespace

void NotePage(Runtime& runtime, uint32_t fragment) {
  uint32_t& first = runtime.by_page[PageHash(runtime.fragment(fragment).start)];
  runtime.translations[fragment].next_on_page = std::exchange(first, fragment);
}

void Drop(Runtime& runtime, uint64_t begin, uint64_t end) {
  // From the page before on: a fragment is shorter than a page.
  const uint64_t first = begin - std::min(begin, kPageBytes);
  const uint64_t pages = std::min<uint64_t>(
      (end - first + kPageBytes - 1) / kPageBytes + 1, runtime.by_page.size());
  bool has_dropped = false;
  for (uint64_t page = 0; page < pages; ++page) {
    const uint32_t hash = PageHash(first + page * kPageBytes);
    has_dropped = DropOfPage(runtime, hash, begin, end) || has_dropped;
  }
  if (has_dropped) {
    ++runtime.version;
  }
}

void DropStale(Runtime& runtime, uint32_t number) {
  const Fragment& fragment = runtime.fragment(number);
  if (!runtime.translations[number].dropped) {  // by another thread
    Drop(runtime, fragment.start, fragment.start + BytesOf(fragment));
  }
}

bool IsTakenByAll(Runtime& runtime, uint64_t version) {
  if (version > runtime.version_of_all) {
    uint64_t least = runtime.version.load();
    ForEachThread(runtime, [&least](const ThreadState& thread) {
      if (__atomic_load_n(&thread.is_elsewhere, __ATOMIC_SEQ_CST) == 0) {
        least =
            std::min(least, __atomic_load_n(&thread.version, __ATOMIC_ACQUIRE));
      }
    });
    runtime.version_of_all = least;
  }
  return version <= runtime.version_of_all;
}

void EnterProgram(ThreadState& thread) {
  Runtime& runtime = RuntimeOf(thread);
  for (;;) {
    __atomic_store_n(&thread.is_elsewhere, 0, __ATOMIC_SEQ_CST);
    if (runtime.is_forgetting.load() == 0) {
      return;
    }
    LeaveProgram(thread);
    WaitAWhile(AddrOf(&runtime.is_forgetting), 1);
  }
}

}  // namespace clew::tracer
