#ifndef COACCEL_CLIENT_CLIENT_FLAGS_HPP
#define COACCEL_CLIENT_CLIENT_FLAGS_HPP

#include "client/client_options.hpp"

#include <span>
#include <string_view>

namespace coaccel::client {

/// Groups of verbs that have a flag.
inline constexpr unsigned for_all = 1;
inline constexpr unsigned for_infer = 2;
inline constexpr unsigned for_load = 4;

/// A verb, in the order of client_verb.
struct verb_entry {
    std::string_view name;
    std::string_view arguments;
    std::string_view help;
    bool may_have_model;
    bool needs_model;
};

/// A flag. One table is the source of the parser, of the help text and of the documentation.
struct flag_entry {
    std::string_view name;
    unsigned verbs;
    std::string_view value; ///< Empty: the flag has none.
    std::string_view help;
    /// Returns what the value must be; empty: it is good.
    std::string_view (*set)(client_options&, std::string_view value);
};

/// In the order of client_verb.
std::span<const verb_entry> client_verbs() noexcept;

/// In the order of the help text.
std::span<const flag_entry> client_flags() noexcept;

inline const verb_entry& verb_of(client_verb verb) noexcept
{
    return client_verbs()[static_cast<std::size_t>(verb)];
}

} // namespace coaccel::client

#endif
