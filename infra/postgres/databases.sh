#!/bin/sh
# A role and a database for each of Airflow and MLflow, named and locked as their addresses say. The server runs this
# once, when its volume is empty.
set -eu
for secret in airflow tracking; do
  address=$(sed -n "s|^[A-Z_]*='postgresql://\(.*\)'$|\1|p" "${SECRETS:-/run/secrets}/$secret.env")
  role=${address%%:*}
  password=${address#*:}
  password=${password%%@*}
  psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -v role="$role" -v password="$password" <<'SQL'
CREATE ROLE :"role" LOGIN PASSWORD :'password';
CREATE DATABASE :"role" OWNER :"role";
REVOKE CONNECT ON DATABASE :"role" FROM PUBLIC;
SQL
done
