#ifndef COACCEL_SERVER_HTTP_TENANTS_HPP
#define COACCEL_SERVER_HTTP_TENANTS_HPP

#include <coaccel/serve/fair_share.hpp>
#include <coaccel/serve/rate_limiter.hpp>
#include <coaccel/server/server_options.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace coaccel::server {

/// Who sends a request: the tenant of its API key.
///
/// Thread safety: any thread.
class tenants {
public:
    /// Without tenants in the options there are no turns and no rates.
    ///
    /// Errors: errc::invalid_option.
    static result<tenants> create(const asio::any_io_executor& ex, const server_options& options,
                                  const telemetry::registry& metrics);

    /// Whether requests need a turn of the fair_share.
    bool divided() const noexcept { return static_cast<bool>(share_); }

    /// The name of the tenant; the name of the anonymous one if there is no key. Null: the request is refused.
    const std::string* identify(std::string_view api_key, std::string_view authorization) const noexcept;

    /// Whether the name, a result of identify(), is that of a tenant with a key.
    bool has_key(const std::string* tenant) const noexcept { return tenant && tenant != &anonymous_name_; }

    /// Whether the tenant may send a request now.
    result<serve::rate_decision> may_send(const std::string& tenant) const;

    const serve::fair_share& share() const noexcept { return share_; }

private:
    std::map<std::string, std::string, std::less<>> by_key_; ///< API key to name.
    std::map<std::string, bool, std::less<>> limited_;       ///< Tenants that have a rate.
    std::string anonymous_name_;
    bool anonymous_ = true;
    serve::fair_share share_;
    serve::rate_limiter rates_;
    telemetry::registration share_metrics_;
    telemetry::registration rate_metrics_;
};

} // namespace coaccel::server

#endif
