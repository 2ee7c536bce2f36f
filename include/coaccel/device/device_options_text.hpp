#ifndef COACCEL_DEVICE_DEVICE_OPTIONS_TEXT_HPP
#define COACCEL_DEVICE_DEVICE_OPTIONS_TEXT_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/device/device_options.hpp>

#include <string>
#include <string_view>

namespace coaccel {

/// Reads options from a text such as "cuda:1,worker,standby=1,context.hang_timeout=5s", for command lines and
/// configuration files. What the text does not name stays as in `base`; an empty text is `base`.
///
/// The text is a list of words, separated by commas, in any order, each at most once:
/// - `best`, `host`, `cuda`: the kind; `cuda:1` and `best:1` also name the ordinal.
/// - `worker`, `in_process`: the isolation.
/// - `field=value`: a field of device_options by its name, such as `standby=1`, `queue.max_queued=1000`,
///   `context.completion=polled`, `host.threads=4`. Sizes take K, M or G (powers of 1024), times ns, us, ms, s or min.
///   `context.lanes` is `per_library`, `single` or `pooled:n`.
/// Fields that are pointers or functions (`plugin`, `worker.program`, `worker.log`, `host.injector`, `restart.decider`)
/// and `host.faults` have no text.
///
/// Errors: errc::invalid_option; the message names the word, its position in the text, counted from 1, and what is
/// wrong with it, or the rule of device_options::check() that the options break.
COACCEL_DECL result<device_options> parse_device_options(std::string_view text, const device_options& base = {});

/// The options from the environment variable COACCEL_DEVICE, in the form of parse_device_options; `base` when it is not
/// set or empty, and in a program that runs with other rights than its caller's (secure_getenv).
///
/// Errors: those of parse_device_options.
COACCEL_DECL result<device_options> device_options_from_environment(const device_options& base = {});

/// The text that parse_device_options reads as these options: the kind, then what is not the default. Fields that have
/// no text are left out.
COACCEL_DECL std::string to_string(const device_options& options);

} // namespace coaccel

#endif
