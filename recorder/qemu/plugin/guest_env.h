// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_GUEST_ENV_H_
#define CLEW_RECORDER_QEMU_PLUGIN_GUEST_ENV_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/inputs.h"
#include "recorder/qemu/core_file.h"

namespace clew::recorder {

// Memory of the guest is our own, at its own addresses.
template <class T>
T* GuestPointer(uint64_t addr) {
  return reinterpret_cast<T*>(addr);
}

// QEMU's state of an x86 CPU (CPUX86State), which is what %rbp holds while
// translated code runs and so in a callback from it. QEMU 7.2 offers plugins no
// registers, so the layout is used directly and tested at the start
// (CheckLayout, CheckFsBase): a QEMU with another one is refused.
//
// Exact at the start of a block (but for rip) and outside translated code;
// inside a block registers may still be in the host's.
class GuestEnv {
 public:
  GuestEnv() = default;
  explicit GuestEnv(uint64_t* env) : env_(env) {}

  uint64_t gpr(Gpr index) const { return env_[index]; }
  void set_gpr(Gpr index, uint64_t value) { env_[index] = value; }
  uint64_t rip() const { return env_[kRip]; }
  uint64_t fs_base() const { return env_[kFsBase]; }
  uint64_t gs_base() const { return env_[kGsBase]; }
  uint64_t fault_addr() const { return env_[kCr2]; }
  uint64_t rflags() const;
  const uint64_t* words() const { return env_; }
  std::array<uint64_t, 16> Gprs() const;
  DumpedThread Registers(Tid thread) const;

  // Empty if the layout is as expected at the first block, which is at `ip`.
  std::string CheckLayout(uint64_t ip) const;

 private:
  // In words of 8 bytes.
  static constexpr int kRip = 16;
  static constexpr int kRflags = 17;
  static constexpr int kCcOpAndDf = 21;
  static constexpr int kFsBase = 36;
  static constexpr int kGsBase = 39;
  static constexpr int kCr2 = 55;

  uint64_t* env_ = nullptr;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_GUEST_ENV_H_
