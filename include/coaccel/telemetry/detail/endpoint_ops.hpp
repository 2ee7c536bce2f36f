#ifndef COACCEL_TELEMETRY_DETAIL_ENDPOINT_OPS_HPP
#define COACCEL_TELEMETRY_DETAIL_ENDPOINT_OPS_HPP

#include <coaccel/core/detail/handler_op.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

class http_server;

class endpoint_stop_op : public async_op_base {
public:
    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~endpoint_stop_op() = default;
};

struct COACCEL_DECL cancel_endpoint_stop {
    std::weak_ptr<http_server> server;
    async_op_base* op;

    void operator()(asio::cancellation_type type) const;
};

class COACCEL_DECL initiate_endpoint_stop {
public:
    using executor_type = asio::any_io_executor;

    explicit initiate_endpoint_stop(std::shared_ptr<http_server> server) noexcept : server_(std::move(server)) {}

    executor_type get_executor() const noexcept;

    template <class Handler>
    void operator()(Handler&& handler) const
    {
        using op_type = handler_op<endpoint_stop_op, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), get_executor());
        op->on_cancel(cancel_endpoint_stop{server_, op});
        begin(*op);
    }

private:
    void begin(async_op_base& op) const;

    std::shared_ptr<http_server> server_;
};

} // namespace coaccel::detail

#endif
