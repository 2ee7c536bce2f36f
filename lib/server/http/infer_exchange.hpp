#ifndef COACCEL_SERVER_HTTP_INFER_EXCHANGE_HPP
#define COACCEL_SERVER_HTTP_INFER_EXCHANGE_HPP

#include "server/model/served_model.hpp"
#include "server/protocol/infer_call.hpp"

#include <coaccel/core/exec_options.hpp>
#include <coaccel/serve/fair_share.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <memory>

namespace coaccel::server {

/// The memory of an inference on a connection, from the request to the reply. It is used again for the next one.
struct infer_exchange {
    infer_request request;
    infer_call call;
    /// Keeps the model while the request runs.
    std::shared_ptr<served_model> model;
    picked_version picked;
    serve::permit turn;
    exec_options how;
    asio::cancellation_signal cancel;
    bool running = false;

    /// Memory that is worth giving back while the connection is idle.
    bool is_large() const noexcept
    {
        constexpr std::size_t most = 4096;
        return request.numbers.capacity() > most || call.memory.capacity() > most;
    }
};

} // namespace coaccel::server

#endif
