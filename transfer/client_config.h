#ifndef CLEW_TRANSFER_CLIENT_CONFIG_H_
#define CLEW_TRANSFER_CLIENT_CONFIG_H_

#include <string>

#include "common/result.h"
#include "transfer/client.h"

namespace clew::transfer {

inline constexpr const char* kClientConfig = "/etc/clew/client.conf";

// How this host reaches its collector, as `path` says:
//
//     collector = host:port
//     ca = file               whose signature on the collector's certificate
//                             counts; without it, the system's authorities
//     certificate = file      who we are, with `key`; or instead
//     key = file
//     token_file = file
//     insecure_loopback = no  yes: without TLS, to a collector on this host
//
// All files but the token are PEM. A file that does not exist counts as empty,
// so that the command line is enough. Fails with kInvalidArgument, which names
// file and line, if a line is wrong, and with kSystem if the file exists and
// cannot be read.
[[nodiscard]] Result<ClientOptions> ReadClientConfig(
    const std::string& path = kClientConfig);

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_CLIENT_CONFIG_H_
