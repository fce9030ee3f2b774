#include "collector/start_notifier.h"

#include <unistd.h>

#include <utility>

#include "collector/clocks.h"
#include "collector/notify/webhook.h"
#include "common/os/scratch_folder.h"

namespace clew::collector {
namespace {

// In `folder`, which is there.
Result<WebhookOptions> WebhookOf(const CollectorConfig& config,
                                 const std::string& folder) {
  CLEW_RETURN_IF_ERROR(CheckWebhookUrl(config.webhook));
  const std::string& program = config.webhook_program;
  if (!program.starts_with('/') || access(program.c_str(), X_OK) != 0) {
    return InvalidArgument(
        "webhook_program {:?}: needs the absolute path of a program that may "
        "be run",
        program);
  }
  return WebhookOptions{.url = config.webhook,
                        .ca_file = config.webhook_ca,
                        .program = program,
                        .folder = folder + "/webhook"};
}

Result<std::string> SecretOf(const CollectorConfig& config) {
  if (config.webhook_secret.empty()) {
    return InvalidArgument(
        "webhook without webhook_secret: give a file with a secret, so that "
        "the receiver knows who calls; make one with 'openssl rand -hex 32'");
  }
  return ReadWebhookSecret(config.webhook_secret);
}

void LogFailure(Log& log, const Notification& notification,
                std::string_view why, bool given_up) {
  const std::vector<Log::Field> fields = {
      {"kind", std::string(ToString(notification.kind))},
      {"group", notification.signature},
      {"attempts", fmt::to_string(notification.attempts + 1)},
      {"message", std::string(why)}};
  if (given_up) {
    log.Write(Log::Priority::kError, "notification_given_up", fields);
  } else {
    log.WriteOnce(Log::Priority::kWarning, "notification_failed",
                  "notification_failed", fields);
  }
}

Notifier::Options OptionsOf(const CollectorConfig& config, Log& log) {
  Notifier::Options options;
  options.page_url = config.web_url;
  options.attempts_max = config.webhook_tries;
  options.wall_s = Wall_s;
  options.failed = [&log](const Notification& notification,
                          std::string_view why, bool given_up) {
    LogFailure(log, notification, why, given_up);
  };
  options.trouble = [&log](std::string_view why) {
    log.WriteOnce(Log::Priority::kError, "notifications", "notifications",
                  {{"message", std::string(why)}});
  };
  return options;
}

Notification TestNotification() {
  const int64_t now_s = Wall_s();
  return {.signature = std::string(64, '0'),
          .title = "a test notification, asked for by the operator",
          .bundle = std::string(64, '0'),
          .command = "clew-collector",
          .version = CLEW_VERSION,
          .failure = "none",
          .host = "localhost",
          .unit = "clew-collector.service",
          .first_seen_s = now_s,
          .last_seen_s = now_s,
          .queued_at_s = now_s};
}

}  // namespace

Result<std::unique_ptr<Notifier>> StartNotifier(const CollectorConfig& config,
                                                Log& log) {
  const bool wanted = !config.webhook.empty();
  CLEW_ASSIGN_OR_RETURN(
      queue, NotificationQueue::Open(config.data + "/catalogue.sqlite",
                                     wanted ? Notifier::kWaitingMax : 0));
  if (!wanted) {
    return nullptr;
  }
  Notifier::Options options = OptionsOf(config, log);
  CLEW_ASSIGN_OR_RETURN(webhook, WebhookOf(config, config.data + "/work"));
  options.webhook = webhook;
  CLEW_ASSIGN_OR_RETURN(secret, SecretOf(config));
  options.secret = secret;
  return Notifier::Start(std::move(options), std::move(queue));
}

Status ReloadSecret(const CollectorConfig& config, Notifier& notifier) {
  CLEW_ASSIGN_OR_RETURN(secret, SecretOf(config));
  notifier.SetSecret(std::move(secret));
  return {};
}

Status SendTestNotification(const CollectorConfig& config) {
  if (config.webhook.empty()) {
    return InvalidArgument(
        "the configuration names no webhook; set 'webhook' to a url");
  }
  // One of its own, since the collector's may be at work.
  CLEW_ASSIGN_OR_RETURN(folder, ScratchFolder::Make("clew-collector"));
  CLEW_ASSIGN_OR_RETURN(webhook, WebhookOf(config, folder.path()));
  CLEW_ASSIGN_OR_RETURN(secret, SecretOf(config));
  return PostWebhook(webhook, secret, Wall_s(),
                     BodyOf(TestNotification(), config.web_url));
}

}  // namespace clew::collector
