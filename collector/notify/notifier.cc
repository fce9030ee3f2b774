#include "collector/notify/notifier.h"

#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/check.h"
#include "common/text/hex.h"
#include "transfer/sha256.h"

namespace clew::collector {
namespace {

using Json = nlohmann::ordered_json;

// Another one in each process.
uint64_t Seed() {
  uint64_t seed = 0;
  // Without it (getrandom(2): early at boot) all wait equally long.
  (void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
  return seed;
}

// The same however often it is sent.
std::string EventId(const Notification& notification) {
  const std::string text =
      fmt::format("{}\n{}\n{}", ToString(notification.kind),
                  notification.signature, notification.bundle);
  return ToHex(transfer::Sha256Of(std::as_bytes(std::span(text))));
}

Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json UrlOf(const Notification& notification, const std::string& page_url) {
  if (page_url.empty()) {
    return nullptr;
  }
  const std::string_view base(page_url);
  return fmt::format("{}/groups/{}",
                     base.substr(0, base.find_last_not_of('/') + 1),
                     notification.signature);
}

}  // namespace

std::string BodyOf(const Notification& notification,
                   const std::string& page_url) {
  const Json body = {{"event", ToString(notification.kind)},
                     {"id", EventId(notification)},
                     {"group", notification.signature},
                     {"title", notification.title},
                     {"program", std::string(ProgramOf(notification.command))},
                     {"version", OrNull(notification.version)},
                     {"signal", notification.failure},
                     {"host", notification.host},
                     {"unit", OrNull(notification.unit)},
                     {"bundle", notification.bundle},
                     {"bundles", notification.bundles},
                     {"first_seen_s", notification.first_seen_s},
                     {"last_seen_s", notification.last_seen_s},
                     {"queued_at_s", notification.queued_at_s},
                     {"url", UrlOf(notification, page_url)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

uint64_t PauseAfter(uint64_t attempts, uint64_t first_s, Random& random) {
  const uint64_t doublings =
      std::min<uint64_t>(std::max<uint64_t>(attempts, 1) - 1, 20);
  const uint64_t pause_s =
      std::min(first_s << doublings, kNotificationPauseMax_s);
  return pause_s - random.Below(pause_s / 2 + 1);
}

Notifier::Notifier(Options options, NotificationQueue queue, Fd stop_fd)
    : options_(std::move(options)),
      queue_(std::move(queue)),
      random_(Seed()),
      stop_fd_(std::move(stop_fd)),
      secret_(options_.secret) {}

Result<std::unique_ptr<Notifier>> Notifier::Start(Options options,
                                                  NotificationQueue queue) {
  Fd stop_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop_fd.get() < 0) {
    return SystemError(errno, "cannot make an eventfd");
  }
  options.webhook.stop_fd = stop_fd.get();
  std::unique_ptr<Notifier> notifier(
      new Notifier(std::move(options), std::move(queue), std::move(stop_fd)));
  CLEW_RETURN_IF_ERROR(notifier->UpdateCounts());
  notifier->thread_ = std::thread([made = notifier.get()] { made->Run(); });
  return notifier;
}

Notifier::~Notifier() { Stop(); }

void Notifier::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stop_asked_.notify_all();
  }
  CLEW_CHECK(eventfd_write(stop_fd_.get(), 1) == 0, "errno {}", errno);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Notifier::SetSecret(std::string secret) {
  const std::lock_guard lock(mutex_);
  secret_ = std::move(secret);
}

NotifierCounts Notifier::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool Notifier::Pause() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> look(options_.look_s);
  return !stop_asked_.wait_for(lock, look, [&] { return stop_; });
}

void Notifier::Run() {
  do {
    while (Step()) {
    }
  } while (Pause());
}

bool Notifier::Step() {
  const auto sent = SendNext();
  const Status counted = UpdateCounts();
  if (!sent || !counted) {
    options_.trouble((sent ? counted.error() : sent.error()).message);
    return false;
  }
  const std::lock_guard lock(mutex_);
  return *sent && !stop_;
}

Result<bool> Notifier::SendNext() {
  CLEW_ASSIGN_OR_RETURN(next, queue_.Next(options_.wall_s()));
  if (!next) {
    return false;
  }
  std::string secret;
  {
    const std::lock_guard lock(mutex_);
    secret = secret_;
  }
  const Status posted = PostWebhook(options_.webhook, secret, options_.wall_s(),
                                    BodyOf(*next, options_.page_url));
  if (!posted && posted.error().sys_errno == ECANCELED) {
    return false;
  }
  if (!posted) {
    CLEW_RETURN_IF_ERROR(Failed(*next, posted.error()));
    return true;
  }
  Count([](NotifierCounts& counts) { ++counts.sent; });
  CLEW_RETURN_IF_ERROR(queue_.Remove(next->number));
  return true;
}

Status Notifier::Failed(const Notification& notification, const Error& error) {
  const uint64_t attempts = notification.attempts + 1;
  const bool given_up = attempts >= options_.attempts_max;
  Count([&](NotifierCounts& counts) {
    ++counts.failed;
    counts.given_up += given_up ? 1 : 0;
  });
  options_.failed(notification, error.message, given_up);
  if (given_up) {
    return queue_.Remove(notification.number);
  }
  const uint64_t pause_s =
      PauseAfter(attempts, options_.pause_s_first, random_);
  return queue_.PutOff(notification.number,
                       options_.wall_s() + static_cast<int64_t>(pause_s));
}

Status Notifier::UpdateCounts() {
  CLEW_ASSIGN_OR_RETURN(now, queue_.Count());
  Count([&](NotifierCounts& counts) {
    counts.waiting = now.waiting;
    counts.dropped = now.dropped;
  });
  return {};
}

}  // namespace clew::collector
