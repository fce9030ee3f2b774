#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "common/result.h"

namespace clew::cli {

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::group(const std::string& name) {
  option_->group(name);
  return this;
}

Option* Option::expected(int low, int high) {
  option_->expected(low, high);
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::check(const Range& range) {
  option_->check(CLI::Range(range.low, range.high));
  return this;
}

Option* Option::check(const IsMember& one_of) {
  option_->check(CLI::IsMember(one_of.values));
  return this;
}

Option* Option::check(PositiveNumber /*kind*/) {
  option_->check(CLI::PositiveNumber);
  return this;
}

size_t Option::count() const { return option_->count(); }

Command::Command(const std::string& about, const std::string& name)
    : program_(std::make_unique<CLI::App>(about, name)), app_(program_.get()) {
  app_->require_subcommand(0, 1);  // none: see HasChosen
}

Command::Command(CLI::App* app) : app_(app) {}

Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name,
                                 const std::string& about) {
  commands_.emplace_back(new Command(app_->add_subcommand(name, about)));
  return commands_.back().get();
}

Option* Command::Keep(CLI::Option* option) {
  options_.push_back(std::make_unique<Option>(option));
  return options_.back().get();
}

template <class T>
Option* Command::add_option(const std::string& names, T& value,
                            const std::string& about) {
  return Keep(app_->add_option(names, value, about));
}

Option* Command::add_flag(const std::string& names, bool& value,
                          const std::string& about) {
  return Keep(app_->add_flag(names, value, about));
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::callback(std::function<void()> action) {
  app_->callback(std::move(action));
}

void Command::require_subcommand(int count) { app_->require_subcommand(count); }

void Command::positionals_at_end() { app_->positionals_at_end(); }

size_t Command::CountOf(const std::string& name) const {
  return app_->get_option(name)->count();
}

bool Command::HasOfGroup(const std::string& group) const {
  const CLI::App& app = *app_;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group() == group && option->count() > 0) {
      return true;
    }
  }
  return false;
}

// CLI11 reports usage by exceptions; they end here.
std::optional<int> Command::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clew: {}; see 'clew help'\n", error.what());
    return kExitUsage;
  }
  return std::nullopt;
}

bool Command::HasChosen() const { return !app_->get_subcommands().empty(); }

// CLI11's help() would give that of the command chosen, which is "help".
std::string Command::Help() const {
  return app_->get_formatter()->make_help(app_, "", CLI::AppFormatMode::Normal);
}

std::optional<std::string> Command::HelpOf(const std::string& name) const {
  const CLI::App& app = *app_;
  const auto found = app.get_subcommands(
      [&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? std::nullopt
                       : std::optional(found[0]->help(app.get_name()));
}

void AddTapeItems(Command& command, uint64_t& items_max) {
  command
      .add_option("--tape-items", items_max,
                  "recorded blocks and inputs held at once, some 50 bytes each")
      ->capture_default_str();
}

template Option* Command::add_option(const std::string&, std::string&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, int32_t&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, uint32_t&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, uint64_t&,
                                     const std::string&);
template Option* Command::add_option(const std::string&, double&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::vector<std::string>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::optional<std::string>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::optional<uint16_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::optional<int32_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::optional<uint32_t>&,
                                     const std::string&);
template Option* Command::add_option(const std::string&,
                                     std::optional<uint64_t>&,
                                     const std::string&);

}  // namespace clew::cli
