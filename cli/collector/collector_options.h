#ifndef CLEW_CLI_COLLECTOR_COLLECTOR_OPTIONS_H_
#define CLEW_CLI_COLLECTOR_COLLECTOR_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "common/result.h"
#include "transfer/client.h"

namespace clew::cli {

// How upload, list and get find the collector: --collector, or else
// $CLEW_COLLECTOR, or else 'collector' of the configuration file.
struct CollectorOptions {
  std::string collector;
  std::string config;
  bool insecure_loopback = false;
};

// Adds --collector, --client-config and --insecure-loopback.
void AddCollectorOptions(Command& command, CollectorOptions& options);

// A person who waits for a list should not wait long for a collector that is
// down.
inline constexpr uint32_t kAttemptsForList = 3;

// Fails with kInvalidArgument if no collector is named anywhere.
[[nodiscard]] Result<std::unique_ptr<transfer::Client>> MakeClient(
    const CollectorOptions& options,
    uint32_t attempts_max = transfer::ClientOptions().attempts_max);

}  // namespace clew::cli

#endif  // CLEW_CLI_COLLECTOR_COLLECTOR_OPTIONS_H_
