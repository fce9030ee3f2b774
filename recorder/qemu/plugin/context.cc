// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/context.h"

#include <optional>
#include <utility>

#include "recorder/qemu/plugin/qemu_api.h"

namespace clew::recorder {

PageProtection QemuPageProtection() {
  return [](uint64_t addr) -> std::optional<uint32_t> {
    const int flags = page_get_flags(addr);
    if ((flags & kQemuPageValid) == 0) {
      return std::nullopt;
    }
    const bool writable = (flags & (kQemuPageWrite | kQemuPageWriteOrg)) != 0;
    return ((flags & kQemuPageRead) != 0 ? kProtRead : 0) |
           (writable ? kProtWrite : 0) |
           ((flags & kQemuPageExec) != 0 ? kProtExec : 0);
  };
}

Result<Context> Context::Open(const PluginConfig& config) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::Open(QemuPageProtection()));
  auto limit = std::make_unique<SizeLimit>(config.size_limit_bytes);
  CLEW_ASSIGN_OR_RETURN(tracer, Tracer::Create(config, *limit));
  CLEW_ASSIGN_OR_RETURN(outcome, RawFile::Create(OutcomePath(config.folder)));
  return Context{.config = config,
                 .memory = std::move(memory),
                 .limit = std::move(limit),
                 .tracer = std::move(tracer),
                 .outcome = OutcomeFile(std::move(outcome))};
}

void Context::Abandon() {
  limit->Abandon();
  tracer->Abandon();
  outcome.Abandon();
}

}  // namespace clew::recorder
