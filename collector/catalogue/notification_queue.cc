#include "collector/catalogue/notification_queue.h"

#include <array>
#include <utility>

#include "common/text/hex.h"

namespace clew::collector {
namespace {

constexpr std::array<std::string_view, 3> kKindNames = {"test", "new_group",
                                                        "reopened"};

// Bundle ?1, where it is news.
constexpr std::string_view kNews =
    "FROM bundles AS b JOIN groups AS g USING(signature) "
    "WHERE b.id = ?1 AND unixepoch() - b.received_at_s < 86400 ";
static_assert(kNewsAgeMax_s == 86400);
// `notification_limit` has one row.
constexpr std::string_view kRoom =
    "(SELECT most FROM notification_limit) > "
    "(SELECT count(*) FROM notifications)";

Status CountDropped(Database& database, const BundleId& bundle) {
  return database
      .Prepare(
          fmt::format("UPDATE notification_limit SET dropped = dropped + 1 "
                      "WHERE most > 0 AND NOT {} AND EXISTS "
                      "(SELECT 1 {})",
                      kRoom, kNews))
      .Blob(bundle.bytes())
      .Run();
}

Result<NotificationKind> KindAt(const Query& query, int column) {
  const int64_t value = query.IntAt(column);
  if (value < 0 || value >= static_cast<int64_t>(kKindNames.size())) {
    return CorruptInput("catalogue: notification of kind {}, there are {}",
                        value, kKindNames.size());
  }
  return static_cast<NotificationKind>(value);
}

Result<Notification> NotificationAt(const Query& query) {
  CLEW_ASSIGN_OR_RETURN(kind, KindAt(query, 1));
  return Notification{.number = query.IntAt(0),
                      .kind = kind,
                      .signature = query.TextAt(2),
                      .title = query.TextAt(3),
                      .bundle = ToHex(query.BlobAt(4)),
                      .command = query.TextAt(5),
                      .version = query.TextAt(6),
                      .failure = query.TextAt(7),
                      .host = query.TextAt(8),
                      .unit = query.TextAt(9),
                      .bundles = static_cast<uint64_t>(query.IntAt(10)),
                      .first_seen_s = query.IntAt(11),
                      .last_seen_s = query.IntAt(12),
                      .queued_at_s = query.IntAt(13),
                      .attempts = static_cast<uint64_t>(query.IntAt(14))};
}

}  // namespace

std::string_view ToString(NotificationKind kind) {
  return kKindNames.at(static_cast<size_t>(kind));
}

Status QueueNotification(Database& database, const GroupEvent& event) {
  CLEW_RETURN_IF_ERROR(CountDropped(database, event.bundle));
  return database
      .Prepare(fmt::format(
          "INSERT INTO notifications(bundle, kind, version, signature, title, "
          "command, failure, host, unit, bundles, first_seen_s, last_seen_s, "
          "queued_at_s) SELECT b.id, ?2, ?3, signature, g.title, b.command, "
          "b.failure, b.host, b.unit, g.bundles, g.first_seen_s, "
          "g.last_seen_s, unixepoch() {} AND {}",
          kNews, kRoom))
      .Blob(event.bundle.bytes())
      .Int(static_cast<int64_t>(event.kind))
      .Text(event.version)
      .Run();
}

Result<NotificationQueue> NotificationQueue::Open(const std::string& path,
                                                  uint64_t most) {
  CLEW_ASSIGN_OR_RETURN(database,
                        Database::Open(path, Database::Mode::kReadWriteCreate));
  CLEW_RETURN_IF_ERROR(
      database.Prepare("UPDATE notification_limit SET most = ?")
          .Int(static_cast<int64_t>(most))
          .Run());
  if (most == 0) {
    CLEW_RETURN_IF_ERROR(database.Execute("DELETE FROM notifications"));
  }
  return NotificationQueue(std::move(database));
}

// One whose time is further away than any pause was put off by a clock that
// was set back since.
Result<std::optional<Notification>> NotificationQueue::Next(int64_t now_s) {
  Query query = database_.Prepare(
      "SELECT number, kind, signature, title, bundle, command, version, "
      "failure, host, unit, bundles, first_seen_s, last_seen_s, queued_at_s, "
      "attempts FROM notifications "
      "WHERE not_before_s <= ?1 OR not_before_s > ?2 "
      "ORDER BY not_before_s, number LIMIT 1");
  query.Int(now_s).Int(now_s + static_cast<int64_t>(kNotificationPauseMax_s));
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  if (!found) {
    return std::nullopt;
  }
  CLEW_ASSIGN_OR_RETURN(notification, NotificationAt(query));
  return std::optional(std::move(notification));
}

Status NotificationQueue::PutOff(int64_t number, int64_t not_before_s) {
  return database_
      .Prepare(
          "UPDATE notifications SET attempts = attempts + 1, "
          "not_before_s = ? WHERE number = ?")
      .Int(not_before_s)
      .Int(number)
      .Run();
}

Status NotificationQueue::Remove(int64_t number) {
  return database_.Prepare("DELETE FROM notifications WHERE number = ?")
      .Int(number)
      .Run();
}

Result<NotificationQueue::Counts> NotificationQueue::Count() {
  Query query = database_.Prepare(
      "SELECT (SELECT count(*) FROM notifications), dropped "
      "FROM notification_limit");
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  if (!found) {
    return CorruptInput("catalogue: no limit of notifications");
  }
  return Counts{.waiting = static_cast<uint64_t>(query.IntAt(0)),
                .dropped = static_cast<uint64_t>(query.IntAt(1))};
}

}  // namespace clew::collector
