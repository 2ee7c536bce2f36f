#ifndef COACCEL_TELEMETRY_DETAIL_COLLECT_OPS_HPP
#define COACCEL_TELEMETRY_DETAIL_COLLECT_OPS_HPP

#include <coaccel/actor/actor_stats.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

class registry_state;

class collection_op : public async_op_base {
public:
    std::tuple<error_code, telemetry::snapshot> take() { return {ec, std::move(value)}; }

    telemetry::snapshot value;

protected:
    ~collection_op() = default;
};

struct COACCEL_DECL cancel_collect {
    std::weak_ptr<registry_state> state;
    collection_op* op;

    void operator()(asio::cancellation_type type) const;
};

class COACCEL_DECL initiate_collect {
public:
    using executor_type = asio::any_io_executor;

    explicit initiate_collect(std::shared_ptr<registry_state> state) noexcept : state_(std::move(state)) {}

    executor_type get_executor() const noexcept;

    template <class Handler>
    void operator()(Handler&& handler) const
    {
        using op_type = handler_op<collection_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), get_executor());
        op->on_cancel(cancel_collect{state_, op});
        begin(*op);
    }

private:
    void begin(collection_op& op) const;

    std::shared_ptr<registry_state> state_;
};

COACCEL_DECL void write_actor(telemetry::metric_writer& out, std::string_view name, const actor_stats& s);
/// errc::invalid_argument, which names the kind of object and its name.
COACCEL_DECL error_code nothing_to_add(std::string_view kind, std::string_view name);
COACCEL_DECL void write_mailbox(telemetry::metric_writer& out, std::string_view name, std::size_t size,
                                std::size_t capacity, bool open);

} // namespace coaccel::detail

#endif
