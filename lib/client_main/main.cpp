#include "client/run_client.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <unistd.h>

int main(int argc, char** argv)
{
    namespace client = coaccel::client;

    const auto variable = [](const char* name) -> std::string {
        const char* value = std::getenv(name);
        return value ? value : "";
    };
    try {
        const client::client_environment environment{variable("COACCEL_SERVER"), variable("COACCEL_API_KEY")};
        const auto options = client::parse_client_options({argv + (argc > 0 ? 1 : 0), argv + argc}, environment);
        if (!options) {
            std::cerr << "coaccel-client: " << options.error().message() << "\n(coaccel-client help lists all verbs)\n";
            return client::exit_usage;
        }
        const int status =
            client::run_client(options.value(), {std::cin, std::cout, std::cerr, ::isatty(STDERR_FILENO) == 1});
        std::cout.flush();
        // Such as a full disk behind a redirection.
        return std::cout || status != client::exit_success ? status : client::exit_file;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coaccel-client: %s\n", e.what());
        return client::exit_connection;
    }
}
