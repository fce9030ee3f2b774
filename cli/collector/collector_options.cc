#include "cli/collector/collector_options.h"

#include <cstdlib>

#include "transfer/client_config.h"

namespace clew::cli {

void AddCollectorOptions(Command& command, CollectorOptions& options) {
  options.config = transfer::kClientConfig;
  command
      .add_option("--collector", options.collector,
                  "host:port; else $CLEW_COLLECTOR, else that of the "
                  "configuration file")
      ->type_name("ADDRESS");
  command
      .add_option("--client-config", options.config,
                  "file with collector, ca, certificate, key, token_file")
      ->capture_default_str();
  command.add_flag("--insecure-loopback", options.insecure_loopback,
                   "without TLS, to a collector on this host");
}

Result<std::unique_ptr<transfer::Client>> MakeClient(
    const CollectorOptions& options, uint32_t attempts_max) {
  CLEW_ASSIGN_OR_RETURN(client, transfer::ReadClientConfig(options.config));
  const char* environment = std::getenv("CLEW_COLLECTOR");
  if (!options.collector.empty()) {
    client.address = options.collector;
  } else if (environment != nullptr && *environment != '\0') {
    client.address = environment;
  }
  if (client.address.empty()) {
    return InvalidArgument(
        "which collector? give --collector HOST:PORT, set CLEW_COLLECTOR, or "
        "write collector = HOST:PORT to {:?}",
        options.config);
  }
  client.insecure_loopback |= options.insecure_loopback;
  client.attempts_max = attempts_max;
  client.program = "clew " CLEW_VERSION;
  return transfer::Client::Create(client);
}

}  // namespace clew::cli
