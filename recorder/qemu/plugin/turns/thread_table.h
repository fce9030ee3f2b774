// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_THREAD_TABLE_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_THREAD_TABLE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "common/check.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

// The threads of the program, by QEMU's number of their virtual CPU, which is
// given again when they are gone, and by their slot, which is not. Belongs to
// whoever has the turn, and threads are added and removed under its lock.
class ThreadTable {
 public:
  static constexpr unsigned kThreadsMax = 1024;

  // A thread is being made. The one that has the number is gone: its clone
  // failed, or it runs in a child process.
  // REQUIRES: vcpu < kThreadsMax.
  Thread& Add(unsigned vcpu) {
    if (const Thread* const gone = Find(vcpu)) {
      Remove(*gone);
    }
    auto thread = std::make_unique<Thread>();
    thread->vcpu = vcpu;
    thread->slot = static_cast<Scheduler::Slot>(by_slot_.size());
    by_slot_.push_back(thread.get());
    newborn_ = thread.get();
    by_vcpu_[vcpu] = std::move(thread);
    return *newborn_;
  }
  void Remove(const Thread& thread) {
    by_slot_[thread.slot] = nullptr;
    by_vcpu_[thread.vcpu].reset();  // `thread` is no more
  }

  // nullptr: there is none.
  Thread* Find(unsigned vcpu) const {
    return vcpu < kThreadsMax ? by_vcpu_[vcpu].get() : nullptr;
  }
  Thread& Of(unsigned vcpu) const {
    Thread* const thread = Find(vcpu);
    CLEW_CHECK(thread != nullptr, "no thread for virtual CPU {}", vcpu);
    return *thread;
  }
  Thread& InSlot(Scheduler::Slot slot) const { return *by_slot_[slot]; }

  // The thread that was added last, once; nullptr: it was taken before.
  Thread* TakeNewborn() { return std::exchange(newborn_, nullptr); }

  // Pointers to the threads, in the order in which they were added.
  auto all() const {
    return by_slot_ |
           std::views::filter([](const Thread* t) { return t != nullptr; });
  }

 private:
  std::array<std::unique_ptr<Thread>, kThreadsMax> by_vcpu_;
  std::vector<Thread*> by_slot_;  // nullptr: gone
  Thread* newborn_ = nullptr;     // made, and its clone has not returned
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_THREAD_TABLE_H_
