#ifndef CLEW_COLLECTOR_CATALOGUE_NOTIFICATION_QUEUE_H_
#define CLEW_COLLECTOR_CATALOGUE_NOTIFICATION_QUEUE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/sqlite.h"
#include "common/result.h"

namespace clew::collector {

// What operators are told of. The numbers are in the catalogue.
enum class NotificationKind : uint8_t {
  kTest = 0,      // asked for by an operator; never queued
  kNewGroup = 1,  // the first bundle of a group
  kReopened = 2,  // a group that was resolved was seen again
};
std::string_view ToString(NotificationKind kind);  // "new_group", ...

// The group and the bundle as they were when it was queued.
struct Notification {
  int64_t number = 0;  // in the queue
  NotificationKind kind = NotificationKind::kTest;
  std::string signature;  // the group's id
  std::string title;
  std::string bundle;   // the bundle's id, in hexadecimal digits
  std::string command;  // of that bundle, as all below
  std::string version;  // of its program; empty: not known
  std::string failure;
  std::string host;
  std::string unit;
  uint64_t bundles = 0;  // of the group
  int64_t first_seen_s = 0;
  int64_t last_seen_s = 0;
  int64_t queued_at_s = 0;
  uint64_t attempts = 0;
};

// Bundles that were received longer ago are not notified: they are only in the
// catalogue again because it was lost.
inline constexpr int64_t kNewsAgeMax_s = 24 * 60 * 60;

// No notification waits longer for its next attempt.
inline constexpr uint64_t kNotificationPauseMax_s = 3600;

// What happened to a group, by `bundle`, which is in it.
struct GroupEvent {
  NotificationKind kind = NotificationKind::kNewGroup;
  BundleId bundle;
  std::string version{};  // of the bundle's program; empty: not known
};
// Queues it, where somebody wants to know (NotificationQueue::Open) and there
// is room; else it is counted. REQUIRES: within a transaction on the
// catalogue's `database`, so that the event and its notification are both there
// or none; the group has its row.
[[nodiscard]] Status QueueNotification(Database& database,
                                       const GroupEvent& event);

// What was queued and not sent, in the catalogue's file: it is kept across
// restarts. One thread's. Every call: kSystem; kCorruptInput.
class NotificationQueue {
 public:
  // Opens the queue. From now on at most `most` notifications wait; with 0 none
  // do, and those that waited are dropped. REQUIRES: Catalogue::Open has made
  // the file.
  [[nodiscard]] static Result<NotificationQueue> Open(const std::string& path,
                                                      uint64_t most);

  // The one whose time came first; nullopt: none is due at `now_s`.
  [[nodiscard]] Result<std::optional<Notification>> Next(int64_t now_s);
  // An attempt failed; none before `not_before_s`.
  [[nodiscard]] Status PutOff(int64_t number, int64_t not_before_s);
  [[nodiscard]] Status Remove(int64_t number);

  struct Counts {
    uint64_t waiting = 0;
    uint64_t dropped = 0;  // there was no room; since the file was made
  };
  [[nodiscard]] Result<Counts> Count();

 private:
  explicit NotificationQueue(Database database)
      : database_(std::move(database)) {}
  Database database_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_NOTIFICATION_QUEUE_H_
