from twin.app.cli import main

main()
