#include "server/model/served_model.hpp"

#include "server/protocol/in_quotes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <charconv>
#include <utility>

namespace coaccel::server {
namespace {

using detail::op_error;

asio::awaitable<result<version_ptr>> already_loaded(version_ptr version)
{
    co_return version;
}

asio::awaitable<result<version_ptr>> load_and_keep(version_load how, std::shared_ptr<version_ptr> made)
{
    auto loaded = co_await load_version(std::move(how));
    if (loaded)
        *made = loaded.value();
    co_return loaded;
}

asio::awaitable<result<void>> warm_up_loaded(const version_ptr& version)
{
    return warm_up(version);
}

/// The number of a version, from the name that it has in the hot_swap; 0: it has none.
std::uint64_t number_in(std::string_view name)
{
    const auto digits = name.substr(name.rfind('/') + 1);
    std::uint64_t number = 0;
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return bad == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

} // namespace

bool counts_against_version(const error_code& ec) noexcept
{
    return serve::is_version_failure(ec) && ec != errc::deadline_exceeded && ec != errc::device_failed;
}

result<std::shared_ptr<served_model>> served_model::create(const asio::any_io_executor& ex, std::string name,
                                                           const telemetry::registry& metrics,
                                                           rollback_handler on_rollback)
{
    // The hot_swap must not own the model, and exists before it.
    const auto link = std::make_shared<std::weak_ptr<served_model>>();
    serve::hot_swap_options options;
    options.name = name;
    options.rollback.is_failure = counts_against_version;
    options.on_event = [link](const serve::swap_event& event) {
        if (const auto model = link->lock())
            model->changed(event);
    };
    BOOST_OUTCOME_TRY(auto current, serve::hot_swap<version_ptr>::create(ex, options));
    auto reported = current.report_to(metrics);
    auto made = std::make_shared<served_model>(std::move(name), std::move(current), std::move(reported),
                                               std::move(on_rollback));
    *link = made;
    return made;
}

void served_model::changed(const serve::swap_event& event)
{
    if (event.what != serve::swap_change::rolled_back)
        return;
    const auto now = current_.pick();
    const std::uint64_t bad = number_in(event.name);
    if (!now || bad == 0)
        return;
    const version_ptr good = *now.value();
    const model_rollback back{name_, bad, good->number, event.reason.message()};
    {
        const std::lock_guard lock(mutex_);
        if (good->number != bad) {
            versions_.erase(bad);
            rolled_back_[bad] = back.reason;
        }
        // It may have been taken out of service after the switch.
        versions_[good->number] = good;
    }
    if (on_rollback_)
        on_rollback_(back);
}

void served_model::add(std::uint64_t number, version_ptr version)
{
    const std::lock_guard lock(mutex_);
    versions_[number] = std::move(version);
    rolled_back_.erase(number);
}

result<picked_version> served_model::pick(std::string_view version) const
{
    if (version.empty()) {
        BOOST_OUTCOME_TRY(auto lease, current_.pick());
        version_ptr v = *lease;
        if (const auto ec = v->check_quarantine()) {
            lease.ended(ec);
            return ec;
        }
        return picked_version{std::move(v), std::move(lease)};
    }
    std::uint64_t number = 0;
    const auto [end, bad] = std::from_chars(version.data(), version.data() + version.size(), number);
    const std::lock_guard lock(mutex_);
    const auto found = versions_.find(number);
    const bool is_number = bad == std::errc() && end == version.data() + version.size();
    if (const auto back = rolled_back_.find(number); is_number && back != rolled_back_.end())
        return op_error(errc::actor_stopped, "model",
                        {in_quotes(name_), " version ", number, " was rolled back: ", back->second});
    if (!is_number || found == versions_.end())
        return op_error(errc::invalid_argument, "model", {in_quotes(name_), " has no version ", in_quotes(version)});
    if (const auto ec = found->second->check_quarantine())
        return ec;
    return picked_version{found->second, {}};
}

asio::awaitable<result<void>> served_model::load(version_load how)
{
    const std::uint64_t number = how.number;
    bool becomes_current = true;
    {
        const std::lock_guard lock(mutex_);
        becomes_current = versions_.empty() || number >= versions_.rbegin()->first;
    }
    if (!becomes_current) {
        BOOST_OUTCOME_CO_TRY(auto made, co_await load_version(std::move(how)));
        BOOST_OUTCOME_CO_TRYV(co_await warm_up(made));
        add(number, std::move(made));
        co_return outcome::success();
    }
    // Seen by this function as well as by the hot_swap.
    const auto made = std::make_shared<version_ptr>();
    serve::version_source<version_ptr> source;
    source.name = name_ + "/" + std::to_string(number);
    source.load = [how, made] { return load_and_keep(how, made); };
    source.warm_up = warm_up_loaded;
    BOOST_OUTCOME_CO_TRYV(co_await current_.async_load(std::move(source)));
    // Its first requests may have had it rolled back already.
    if (const auto now = current_.pick(); now && *now.value() != *made)
        co_return op_error(errc::start_failed, "model", {in_quotes(name_), " version ", number, " was rolled back"});
    add(number, *made);
    co_return outcome::success();
}

asio::awaitable<result<void>> served_model::make_current(version_ptr version)
{
    serve::version_source<version_ptr> source;
    source.name = name_ + "/" + std::to_string(version->number);
    source.load = [version] { return already_loaded(version); };
    BOOST_OUTCOME_CO_TRYV(co_await current_.async_load(std::move(source)));
    // The one before was taken out of service, so nothing may return to it.
    (void)current_.confirm();
    co_return outcome::success();
}

asio::awaitable<result<void>> served_model::unload(std::uint64_t number)
{
    version_ptr next;
    bool was_current = false;
    {
        const std::lock_guard lock(mutex_);
        rolled_back_.erase(number);
        const auto found = versions_.find(number);
        if (found == versions_.end())
            co_return outcome::success();
        was_current = std::next(found) == versions_.end();
        versions_.erase(found);
        if (was_current && !versions_.empty())
            next = versions_.rbegin()->second;
    }
    if (next) {
        auto done = co_await make_current(std::move(next));
        co_return done;
    }
    if (was_current)
        co_await shut_down();
    co_return outcome::success();
}

asio::awaitable<void> served_model::shut_down()
{
    {
        const std::lock_guard lock(mutex_);
        versions_.clear();
    }
    auto ended = co_await current_.async_shutdown(shutdown::drain);
    (void)ended;
}

std::vector<version_ptr> served_model::versions() const
{
    const std::lock_guard lock(mutex_);
    std::vector<version_ptr> all;
    for (const auto& [number, v] : versions_)
        all.push_back(v);
    return all;
}

bool served_model::ready() const
{
    const std::lock_guard lock(mutex_);
    return !versions_.empty();
}

} // namespace coaccel::server
