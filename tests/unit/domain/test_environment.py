"""Which variables a runner gets and which of them its tools may see."""

from __future__ import annotations

import pytest

from subagents_nb.domain.agents.environment import runner_environ, tool_environ
from subagents_nb.domain.agents.models import PROVIDERS

KERNEL = """
JPY_PARENT_PID JPY_SESSION_NAME JPY_API_TOKEN JUPYTER_TOKEN JUPYTER_SERVER_URL IPYTHONDIR MPLBACKEND
PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT PYDEVD_USE_CYTHON DEBUGPY_LAUNCHER_PORT COVERAGE_PROCESS_START
COV_CORE_SOURCE PYTEST_CURRENT_TEST PAGER GIT_PAGER FORCE_COLOR CLICOLOR TERM COLUMNS
""".split()  # noqa: SIM905

ROUTING = """
GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0
GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_OBJECT_DIRECTORY GIT_DIR GIT_WORK_TREE GIT_PREFIX
GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_NAMESPACE
GIT_INTERNAL_SUPER_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM
""".split()  # noqa: SIM905

TOKENS = """
GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN HF_TOKEN HUGGING_FACE_HUB_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
AWS_SESSION_TOKEN AZURE_CLIENT_SECRET AZURE_OPENAI_API_KEY GOOGLE_APPLICATION_CREDENTIALS COHERE_API_KEY
NPM_TOKEN PYPI_TOKEN TWINE_PASSWORD PGPASSWORD MYSQL_PWD DB_PASS REDIS_PASSWORD SMTP_PASS SENTRY_DSN
SLACK_BOT_TOKEN STRIPE_SECRET_KEY DOCKER_AUTH_CONFIG VAULT_TOKEN CI_JOB_TOKEN CIRCLE_TOKEN
DIGITALOCEAN_ACCESS_TOKEN CLOUDFLARE_API_TOKEN HEROKU_API_KEY JWT_SECRET SESSION_COOKIE SSH_PRIVATE_KEY
GPG_PASSPHRASE GITLAB_PAT KAGGLE_KEY WANDB_API_KEY ENCRYPTION_KEY api_key Api_Token MYAPIKEY BEARER_TOKEN
NETRC_PASSWD AUTH_TOKEN npm_config__authToken GITHUBTOKEN CLIENTSECRET ACCESSKEY SECRETKEY AWS_CREDS
SSHPASS LDAP_BIND_PW CONNECTION_STRING AZURE_STORAGE_CONNECTION_STRING ConnectionStrings__Default SERVICE_CONN_STR
AZURE_STORAGE_SAS SAS_TOKEN AUTH_JWT JWT SESSION_COOKIES SSH_PRIVATE STORAGE_ACCOUNT_KEY STORAGEACCOUNTKEY
SLACK_WEBHOOK_URL WALLET_MNEMONIC TOTP BW_SESSION OP_SESSION_my SSH_AUTH_SOCK RSYNC_PASSWORD OLD_PASSWORDS APP_PASSCODE
""".split()  # noqa: SIM905

INNOCENT = """
PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ PWD OLDPWD TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY https_proxy
SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE VIRTUAL_ENV CONDA_PREFIX PYTHONPATH LD_LIBRARY_PATH
CUDA_VISIBLE_DEVICES KEYBOARD XKB_DEFAULT_LAYOUT MONKEY TURKEY_DIR AUTHOR GIT_AUTHOR_NAME XAUTHORITY
TOKENIZERS_PARALLELISM COMPASS BYPASS_CACHE PATTERN PATCH_LEVEL DISPLAY OMP_NUM_THREADS PASSENGER
COOKIECUTTER_CONFIG HOST_KEYBOARD SECRETARY TOKENIZER_PATH DSNAP BEARERS_NAME HOCKEY KEYNOTE
PASSWORD_STORE_DIR SSH_ASKPASS GIT_ASKPASS SUDO_ASKPASS SSH_AGENT_PID SAS_HOME DATABASE_URL REDIS_URL XDG_SESSION_ID
DESKTOP_SESSION PRIVATE_REGISTRY SHARED_FOLDER GIT_AUTHOR_EMAIL GIT_SSH_COMMAND OVERPASS_HOME PIP_INDEX_URL CONNECTIONS
""".split()  # noqa: SIM905


def test_variables_of_kernels_debuggers_and_git_routing_do_not_reach_a_runner() -> None:
    got = runner_environ(dict.fromkeys([*KERNEL, *ROUTING, *INNOCENT, "OPENAI_API_KEY"], "x"))
    assert not {*KERNEL, *ROUTING} & set(got)
    assert set(INNOCENT) <= set(got)
    assert got["OPENAI_API_KEY"] == "x"


@pytest.mark.parametrize("name", [key for provider in PROVIDERS for key in provider.key_env])
def test_no_providers_key_reaches_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {}


@pytest.mark.parametrize("name", TOKENS)
def test_a_variable_that_looks_like_a_secret_does_not_reach_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {}
    assert tool_environ({name: "x"}, allowed=[name]) == {name: "x"}


def test_at_least_forty_such_names_are_tried() -> None:
    assert len(set(TOKENS)) >= 40


@pytest.mark.parametrize("name", INNOCENT)
def test_an_innocent_variable_reaches_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {name: "x"}


def test_of_gits_routing_nothing_reaches_a_tool_so_that_no_half_of_a_set_does() -> None:
    assert tool_environ(dict.fromkeys(ROUTING, "x"), allowed=["GIT_CONFIG_COUNT"]) == {}


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://app:s3cret@db.example.org:5432/app",
        "redis://:s3cret@cache",
        "https://user:s3cret@pypi.example.org/simple",
        "Server=tcp:db,1433;Database=app;User ID=app;Password=s3cret;Encrypt=True",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=czNjcmV0;EndpointSuffix=core.example.net",
        "https://a.blob.example.net/c?sv=2022-11-02&sp=r&sig=czNjcmV0",
        "Endpoint=sb://a.example.net/;SharedAccessKeyName=k;SharedAccessKey=czNjcmV0",
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMII"}',
    ],
)
def test_a_value_that_carries_a_password_does_not_reach_a_tool_whatever_its_name(value: str) -> None:
    assert tool_environ({"DATABASE_URL": value}) == {}
    assert tool_environ({"DATABASE_URL": value}, allowed=["DATABASE_URL"]) == {"DATABASE_URL": value}


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://db.example.org:5432/app",
        "https://user@pypi.example.org/simple",
        "http://proxy.example.org:3128",
        "http://[::1]:8080/a@b:c",
        "a:b@c",
        "C:\\work;D:\\more",
        "signal=9;sigma=3",
        "ssh -o PasswordAuthentication=no",
    ],
)
def test_an_address_without_a_password_reaches_a_tool(value: str) -> None:
    assert tool_environ({"DATABASE_URL": value}) == {"DATABASE_URL": value}
