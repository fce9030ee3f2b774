// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURN_LOCK_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURN_LOCK_H_

#include <mutex>
#include <optional>
#include <utility>

namespace clew::recorder {

// Proof that the caller holds the lock of the turns, as long as this lives.
// Whatever needs the lock takes one, and only TurnLock makes them.
class Locked {
 private:
  friend class TurnLock;
  explicit Locked(std::unique_lock<std::mutex> lock) : lock_(std::move(lock)) {}

  std::unique_lock<std::mutex> lock_;
};

// Guards who has the turn, who can run, who is held and who waits for which
// futex.
class TurnLock {
 public:
  [[nodiscard]] Locked Take() { return Locked(std::unique_lock(mutex_)); }
  // nullopt: another thread holds it.
  [[nodiscard]] std::optional<Locked> TryTake() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() ? std::optional(Locked(std::move(lock)))
                            : std::nullopt;
  }

 private:
  std::mutex mutex_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURN_LOCK_H_
