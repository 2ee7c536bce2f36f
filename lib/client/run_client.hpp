#ifndef COACCEL_CLIENT_RUN_CLIENT_HPP
#define COACCEL_CLIENT_RUN_CLIENT_HPP

#include "client/client_options.hpp"

#include <iosfwd>

namespace coaccel::client {

/// The exit status of the program.
enum exit_status : int {
    exit_success = 0,
    exit_refused = 1,    ///< The server has refused, is not ready, or a request has failed.
    exit_usage = 2,      ///< The command line is wrong.
    exit_connection = 3, ///< There is no connection, or no valid reply.
    exit_file = 4,       ///< A file cannot be read or written.
};

/// Standard streams of the program.
struct client_streams {
    std::istream& in;
    std::ostream& out;
    std::ostream& err;
    bool terminal = false; ///< Whether `err` is a terminal, on which a progress line may be overwritten.
};

/// Does what the options say, and waits until it is done. Returns an exit_status.
int run_client(const client_options& options, client_streams streams);

} // namespace coaccel::client

#endif
