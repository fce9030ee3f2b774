// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/guest_env.h"

#include <fmt/format.h>

#include <algorithm>

#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin/qemu_api.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kFlagDirection = 1u << 10;
constexpr uint64_t kFlagsLazy = 0x8d5 | kFlagDirection;  // OF SF ZF AF PF CF

}  // namespace

uint64_t GuestEnv::rflags() const {
  const auto op = static_cast<int32_t>(env_[kCcOpAndDf] & UINT32_MAX);
  const auto direction = static_cast<int32_t>(env_[kCcOpAndDf] >> 32);
  return (env_[kRflags] & ~kFlagsLazy) | cpu_cc_compute_all(env_, op) |
         (direction < 0 ? kFlagDirection : 0) | 2;
}

std::array<uint64_t, 16> GuestEnv::Gprs() const {
  std::array<uint64_t, 16> gprs;
  std::copy_n(env_, gprs.size(), gprs.begin());
  return gprs;
}

DumpedThread GuestEnv::Registers(Tid thread) const {
  return {.thread = thread,
          .gpr = Gprs(),
          .rip = rip(),
          .rflags = rflags(),
          .fs_base = fs_base(),
          .gs_base = gs_base()};
}

// At the start rsp points to argc, argv[], NULL, and all other registers but
// those that the loader sets are 0.
std::string GuestEnv::CheckLayout(uint64_t ip) const {
  if (guest_base != 0) {
    return fmt::format("QEMU maps the program at {:#x}, expected at 0",
                       guest_base);
  }
  if (rip() != ip) {
    return fmt::format("instruction pointer is {:#x}, expected {:#x}", rip(),
                       ip);
  }
  const uint64_t rsp = gpr(kRsp);
  if (rsp == 0 || rsp % 16 != 0 || rsp >= kGuestEnd ||
      page_get_flags(rsp) == 0) {
    return fmt::format("{:#x} is no stack pointer", rsp);
  }
  const auto* stack = reinterpret_cast<const uint64_t*>(rsp);
  if (stack[0] == 0 || stack[0] > 1u << 20 || stack[stack[0] + 1] != 0) {
    return fmt::format("no argument vector at {:#x}", rsp);
  }
  if (gpr(kRbx) != 0 || gpr(kRbp) != 0 || fs_base() != 0 || gs_base() != 0) {
    return "registers that should be 0 at the start are not";
  }
  return "";
}

}  // namespace clew::recorder
