#ifndef COACCEL_DEVICE_DEVICE_OPTIONS_TEXT_HPP
#define COACCEL_DEVICE_DEVICE_OPTIONS_TEXT_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/device/device_options.hpp>

#include <string>
#include <string_view>

namespace coaccel {

/// Parses options from a text such as "cuda:1,worker,standby=1,context.hang_timeout=5s", for command lines and
/// configuration files. Options that the text does not name are taken from `base`; an empty text yields `base`.
///
/// The text is a list of words separated by commas, in any order, each at most once:
/// - `best`, `host`, `cuda`: the kind; `cuda:1` and `best:1` also name the ordinal.
/// - `worker`, `in_process`: the isolation.
/// - `field=value`: a field of device_options by its name, such as `standby=1`, `queue.max_queued=1000`,
///   `context.completion=polled`, `host.threads=4`. Sizes take K, M or G (powers of 1024), times ns, us, ms, s or min.
///   `context.lanes` is `chained:n`, `per_library`, `single` or `pooled:n`.
/// Pointers and functions (`plugin`, `trace`, `worker.program`, `worker.log`, `host.injector`, `restart.decider`),
/// `host.faults` and `restart.strategy` have no text form.
///
/// Errors: errc::invalid_option; the message names the word, its position in the text, counted from 1, and the problem,
/// or the rule of device_options::check() that the options violate.
/// Exceptions: std::bad_alloc.
COACCEL_DECL result<device_options> parse_device_options(std::string_view text, const device_options& base = {});

/// Reads options from the environment variable COACCEL_DEVICE, in the format of parse_device_options. Yields `base` if
/// the variable is unset or empty, and in a program with elevated privileges (secure_getenv).
///
/// Errors: those of parse_device_options.
/// Exceptions: std::bad_alloc.
COACCEL_DECL result<device_options> device_options_from_environment(const device_options& base = {});

/// The text that parse_device_options parses to these options: the kind, then every value that is not the default.
/// Fields without a text form are left out.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string to_string(const device_options& options);

} // namespace coaccel

#endif
