#ifndef CLEW_TRANSFER_REMOTE_GROUPS_H_
#define CLEW_TRANSFER_REMOTE_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transfer/host_report.h"

namespace clew::transfer {

// What a collector tells about all hosts: Group and HostStatus of
// proto/collector.proto explain each field.

struct RemoteGroup {
  std::string signature;
  std::string title;
  std::string program;
  uint64_t bundles = 0;
  uint64_t hosts = 0;
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
  std::string state;
  std::string why;
  std::string representative;  // a bundle's id; empty: none
  std::string first_version;
  std::string last_version;
  bool resolved = false;
  std::string resolved_in;
  std::string reopened_in;
  std::string note;
  std::string changed_by;
  int64_t changed_at_s = 0;
};

struct RemoteGroupQuery {
  uint64_t offset = 0;
  uint32_t limit = 50;             // 1..500
  std::string text{};              // empty: all
  std::optional<bool> resolved{};  // absent: both
  bool reopened = false;           // only those seen again
  std::string state{};             // empty: all
  // One bundle of the group has all of this; empty or 0: all.
  std::string program{};
  std::string version{};
  std::string failure{};
  std::string host{};
  std::string unit{};
  int64_t since_s = 0;
};

struct RemoteVersion {
  std::string version;
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
};

struct RemoteGroupDetails {
  RemoteGroup group;
  std::vector<RemoteVersion> versions;  // latest first
};

// Fields without a value are left as they are.
struct RemoteGroupChange {
  std::optional<bool> resolved{};
  std::string version{};  // in which it is resolved; empty: what comes next
  std::optional<std::string> note{};
};

struct RemoteHost {
  std::string host;
  int64_t seen_at_s = 0;
  std::string health;
  HostReport report;
};

struct RemoteHostQuery {
  uint64_t offset = 0;
  uint32_t limit = 50;   // 1..500
  std::string text{};    // empty: all
  std::string health{};  // empty: all
};

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_REMOTE_GROUPS_H_
